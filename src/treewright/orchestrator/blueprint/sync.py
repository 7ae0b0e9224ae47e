"""Blueprint sync: does a leanblueprint say of its declarations what Lean says of them?

`assess` compares what was read with what Lean and the ledger know; `marked` gives the new text
of a file. `\\leanok` is added only where every declaration is verified, and taken away only
where Lean knows better. What Lean could not look at, and what the ledger has a proof of, is left as
it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.storage import atomic
from treewright.orchestrator.blueprint import latex
from treewright.orchestrator.blueprint.latex import Blueprint, Marked, Statement

State = Literal["verified", "sorry", "axiom", "absent", "unknown"]
"""What Lean says of a declaration; `unknown`: its file could not be elaborated here."""

_TO_BE_FILLED = ("sorry", "absent")
_ENTRIES = ("blueprint/src/content.tex", "src/content.tex", "content.tex", "blueprint/src/web.tex",
            "src/web.tex", "web.tex")  # fmt: skip


class Entry(msgspec.Struct, frozen=True):
    """One statement of the blueprint beside what is known of it."""

    file: str
    line: int
    environment: str
    label: str
    lean: dict[str, State]
    statement_ok: bool
    proof_ok: bool | None
    drift: tuple[str, ...]


class Edit(msgspec.Struct, frozen=True):
    """Add `\\leanok` at `start`, or remove what stands between `start` and `end`."""

    file: Path
    start: int
    end: int


class Assessment(msgspec.Struct, frozen=True):
    entries: tuple[Entry, ...]
    edits: tuple[Edit, ...]
    problems: tuple[str, ...]

    @property
    def drifted(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.drift)


def find_entry(path: Path) -> Path:
    """The LaTeX file to begin with: the given one, or that of a leanblueprint's directory."""
    if path.is_file():
        return path
    for name in _ENTRIES:
        if (path / name).is_file():
            return path / name
    raise UsageError(f"there is no blueprint at {path}; name its content.tex or its directory")


def declarations(blueprint: Blueprint) -> set[str]:
    return {name for statement in blueprint.statements for name in statement.lean}


def assess(
    blueprint: Blueprint, states: Mapping[str, State], proved_in_ledger: Iterable[str], base: Path
) -> Assessment:
    """Compares; `states` has an entry for every declaration that the blueprint names."""
    in_ledger = frozenset(proved_in_ledger)
    labels = {statement.label for statement in blueprint.statements}
    entries, edits = [], []
    for statement in blueprint.statements:
        known: dict[str, State] = {name: states[name] for name in statement.lean}
        drift, changes = _compare(statement, known, in_ledger)
        drift += [
            f"proved_in_ledger:{name}"
            for name, state in known.items()
            if state in _TO_BE_FILLED and name in in_ledger
        ]
        uses = [*statement.uses, *(statement.proof.uses if statement.proof else [])]
        drift += [f"uses_undefined:{label}" for label in dict.fromkeys(uses) if label not in labels]
        edits += changes
        entries.append(
            Entry(
                _relative(statement.file, base),
                statement.line,
                statement.environment,
                statement.label,
                known,
                bool(statement.leanok),
                bool(statement.proof.leanok) if statement.proof else None,
                tuple(drift),
            )
        )
    return Assessment(tuple(entries), tuple(edits), tuple(blueprint.problems))


def _compare(
    statement: Statement, known: Mapping[str, State], in_ledger: frozenset[str]
) -> tuple[list[str], list[Edit]]:
    """What is not as Lean says, and the edits that make it so."""
    drift: list[str] = []
    edits: list[Edit] = []
    states = set(known.values())
    # The proof of what the ledger has is found already: it only has to be put into the project.
    held = {name for name, state in known.items() if state in _TO_BE_FILLED and name in in_ledger}
    against = {state for name, state in known.items() if name not in held}
    if not known:
        claimed = bool(statement.leanok or (statement.proof and statement.proof.leanok))
        return (["leanok_without_lean"] if claimed else []), []
    drift += [f"{state}:{name}" for name, state in known.items() if state in ("absent", "unknown")]
    if states == {"verified"}:
        for part, code in ((statement, "statement"), (statement.proof, "proof")):
            if part is not None and not part.leanok:
                drift.append(f"{code}_not_marked")
                edits.append(Edit(part.file, part.insert_at, part.insert_at))
    if statement.proof is not None and against & {"sorry", "axiom", "absent"}:
        drift += ["proof_marked_but_open"] if statement.proof.leanok else []
        edits += _removals(statement.proof)
    if "absent" in against:
        drift += ["statement_marked_but_absent"] if statement.leanok else []
        edits += _removals(statement)
    elif statement.proof is None and against & {"sorry", "axiom"} and statement.leanok:
        drift.append("statement_marked_but_open")
        edits += _removals(statement)
    return drift, edits


def _removals(part: Marked) -> list[Edit]:
    return [Edit(part.file, start, end) for start, end in part.leanok]


def _relative(path: Path, base: Path) -> str:
    base = base.resolve()
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)


def edited(text: str, edits: Iterable[Edit]) -> str:
    """The text with the edits, which are all of it, and every other character as it was."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        if edit.start == edit.end:
            text = _inserted(text, edit.start, newline)
        else:
            text = _removed(text, edit.start, edit.end)
    return text


def _inserted(text: str, at: int, newline: str) -> str:
    """On a line of its own behind `at`, indented as the line that follows or that it ends."""
    line_start = text.rfind("\n", 0, at) + 1
    indent = _indent(text[line_start:])
    if text[line_start:].lstrip(" \t").startswith("\\begin"):
        indent = _indent(text[text.find("\n", at) + 1 :]) if "\n" in text[at:] else indent
    follows = " " if text[at : at + 1].isalpha() else ""
    return f"{text[:at]}{newline}{indent}\\leanok{follows}{text[at:]}"


def _indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def _removed(text: str, start: int, end: int) -> str:
    """With its whole line, if there is nothing else on it."""
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", end)
    line_end = len(text) if line_end < 0 else line_end + 1
    if not (text[line_start:start] + text[end:line_end]).strip():
        return text[:line_start] + text[line_end:]
    return text[:start] + text[end:]


def write(blueprint: Blueprint, assessment: Assessment) -> list[Path]:
    """Applies the edits; the files that changed."""
    changed = []
    for file, text in blueprint.texts.items():
        edits = [edit for edit in assessment.edits if edit.file == file]
        if edits:
            atomic.write_bytes(file, latex.encode(edited(text, edits)))
            changed.append(file)
    return changed
