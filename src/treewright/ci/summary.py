"""The findings as Markdown, for the summary of a job. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from treewright.ci.findings import Findings, OpenGoal
from treewright.kernel.text import markdown, numbers

MAX_ROWS = 200
MAX_PATCH = 60_000  # a step's summary may have 1 MiB
_SHORT_HASH = 12
_PATCH = "Proofs that the replay check accepted, for `git apply`:"


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
        rows: list[list[str]] = []
        for attempt in findings.new:
            is_verdict = attempt.status in ("proved", "false")
            result = f"**{attempt.status}**" if is_verdict else attempt.status
            why = f": {markdown.escape(attempt.detail)}" if attempt.detail else ""
            rows.append([*_cells(attempt.sorry), f"{result}{why}"])
        yield from _table(("new", "declaration", "goal", "result"), rows)
    if len(patch) > MAX_PATCH:
        yield _PATCH
        yield f"(a patch of {len(patch):,} characters, too long to be shown here)"
    elif patch:
        yield _PATCH
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", patch)), default=0))
        yield f"{fence}diff\n{patch}{fence}"
    if findings.removed:
        removed = [_cells(goal) for goal in findings.removed]
        yield from _table(("removed", "declaration", "goal"), removed)
    for problems, text in (
        (
            findings.problems,
            "Lean could not read these files completely, so they may have further sorries:",
        ),
        (
            findings.notes,
            "Lean could not read these files at the base, so all their sorries count as new:",
        ),
    ):
        if problems:
            yield text
            listed = [[markdown.code(one.file), markdown.escape(one.error)] for one in problems]
            yield from _table(("file", "error"), listed)


def _table(header: tuple[str, ...], rows: list[list[str]]) -> Iterator[str]:
    yield markdown.table(header, rows[:MAX_ROWS])
    if len(rows) > MAX_ROWS:
        yield f"… and {len(rows) - MAX_ROWS} more."


def _cells(goal: OpenGoal) -> list[str]:
    position = markdown.code(f"{goal.file}:{goal.line}")
    return [position, markdown.code(goal.declaration) or "–", markdown.code(goal.goal)]
