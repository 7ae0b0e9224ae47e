"""The findings as Markdown, for the summary of a job. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from treewright.ci.findings import Attempt, Findings, OpenGoal, Problem
from treewright.kernel.text import markdown, numbers

MAX_ROWS = 200
MAX_PATCH = 60_000  # a step's summary may have 1 MiB
_SHORT_HASH = 12


def summary(findings: Findings, patch: str) -> str:
    """Return the summary; empty parts are left out."""
    return "\n\n".join(_parts(findings, patch)) + "\n"


def headline(findings: Findings) -> str:
    """Return the numbers of new, proved and removed sorries in one line."""
    counts = findings.counts
    text = f"{numbers.count(counts['new'], 'new sorry', 'new sorries')}"
    if findings.new:
        text += f" ({counts['proved']} proved)"
    return f"{text}, {counts['removed']} removed"


def _parts(findings: Findings, patch: str) -> Iterator[str]:
    yield f"## Treewright: {headline(findings)}"
    files = numbers.count(len(findings.files), "Lean file")
    yield f"{files} changed since {markdown.code(findings.base[:_SHORT_HASH])}."
    if findings.new:
        yield from _table(("new", "declaration", "goal", "result"), map(_new, findings.new))
    if patch:
        yield "Proofs that the replay check accepted, for `git apply`:"
        yield _patch(patch)
    if findings.removed:
        yield from _table(("removed", "declaration", "goal"), map(_cells, findings.removed))
    if findings.problems:
        yield "Lean could not read these files completely, so they may have further sorries:"
        yield from _table(("file", "error"), map(_problem, findings.problems))
    if findings.notes:
        yield "Lean could not read these files at the base, so all their sorries count as new:"
        yield from _table(("file", "error"), map(_problem, findings.notes))


def _table(header: tuple[str, ...], rows: Iterable[list[str]]) -> Iterator[str]:
    every = list(rows)
    yield markdown.table(header, every[:MAX_ROWS])
    if len(every) > MAX_ROWS:
        yield f"… and {len(every) - MAX_ROWS} more."


def _cells(goal: OpenGoal) -> list[str]:
    position = markdown.code(f"{goal.file}:{goal.line}")
    return [position, markdown.code(goal.declaration) or "–", markdown.code(goal.goal)]


def _new(attempt: Attempt) -> list[str]:
    result = f"**{attempt.status}**" if attempt.status in ("proved", "false") else attempt.status
    why = f": {markdown.escape(attempt.detail)}" if attempt.detail else ""
    return [*_cells(attempt.sorry), f"{result}{why}"]


def _problem(problem: Problem) -> list[str]:
    return [markdown.code(problem.file), markdown.escape(problem.error)]


def _patch(patch: str) -> str:
    if len(patch) > MAX_PATCH:
        return f"(a patch of {len(patch):,} characters, too long to be shown here)"
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", patch)), default=0))
    return f"{fence}diff\n{patch}{fence}"
