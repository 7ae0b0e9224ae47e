"""The sorries of a project: as records, as goals for the scheduler, and their difficulty.

Lean finds the sorries (`lean.sorries`). A declaration with several of them is one goal, because
it can be proved only as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from treewright.lean.session.answers import Goal as LeanGoal
from treewright.lean.sorries import FileSorries, Sorry
from treewright.orchestrator.types import PROJECT_CLASS, Goal, Place

_NAMELESS = ("", "_example")
_SYMBOLS = re.compile(r"[\w.']+|[^\w\s]")
_HARD_SYMBOLS = {
    "∃": 0.15, "↔": 0.06, "∣": 0.08, "^": 0.05, "%": 0.05, "fun": 0.06, "Exists": 0.15,
}  # fmt: skip
_RECURSIVE = re.compile(
    r"\b(List|Array|Nat\.\w+|foldl|foldr|reverse|filter|length|append|\w*rec)\b"
)
_LEAST_DIFFICULTY = 0.1
_SIZE_SCALE = 160.0


class SorryRecord(msgspec.Struct, frozen=True):
    """One `sorry` as `treewright sorries --json` prints it.

    Lines and columns count from 1; `start` and `end` are byte offsets in the file. `tactic` says
    whether the `sorry` stands among tactics.
    """

    file: str
    line: int
    column: int
    declaration: str
    goal: str
    context: tuple[str, ...]
    imports: tuple[str, ...]
    difficulty: float
    start: int
    end: int
    tactic: bool

    @property
    def is_named(self) -> bool:
        """Whether the declaration has a name; the replay check can prove no other."""
        return self.declaration not in _NAMELESS


def sorry_records(found: FileSorries, root: Path) -> Iterator[SorryRecord]:
    """Yield a record for each `sorry` of a file; its path is given relative to `root`."""
    for sorry in found.sorries:
        context = _context(sorry.goal)
        yield SorryRecord(
            relative_name(found.path, root),
            sorry.line,
            sorry.column + 1,
            sorry.declaration,
            sorry.goal.target,
            context,
            sorry.imports,
            estimate_difficulty(sorry.goal.target, context),
            sorry.start,
            sorry.end,
            sorry.tactic,
        )


def project_goals(found: FileSorries, root: Path) -> list[Goal]:
    """Return a goal for each named declaration with a `sorry`, in the order of the file."""
    return goals_of_file(found.source, list(sorry_records(found, root)))


def goals_of_file(source: str, records: Sequence[SorryRecord]) -> list[Goal]:
    """Return a goal for each named declaration that the records of one file mention."""
    by_declaration: dict[str, list[SorryRecord]] = {}
    for record in records:
        if record.is_named:
            by_declaration.setdefault(record.declaration, []).append(record)
    return [
        Goal(
            id=f"{first.file}:{declaration}",
            text=first.goal,
            context=first.context,
            estimated_difficulty=max(record.difficulty for record in (first, *others)),
            imports=first.imports,
            goal_class=PROJECT_CLASS,
            place=Place(
                file=first.file,
                source=source,
                declaration=declaration,
                holes=tuple((r.start, r.end) for r in (first, *others)),
                tactic_holes=frozenset((r.start, r.end) for r in (first, *others) if r.tactic),
            ),
        )
        for declaration, (first, *others) in by_declaration.items()
    ]


def unnamed_sorries(found: FileSorries) -> list[Sorry]:
    """Return the sorries of `example`s, which have no name that the replay check could prove."""
    return [sorry for sorry in found.sorries if sorry.declaration in _NAMELESS]


def relative_name(path: Path, root: Path) -> str:
    """Return the path of a file below a project, or the whole path of a file elsewhere."""
    base = root if root.is_dir() else root.parent
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)


def _context(goal: LeanGoal) -> tuple[str, ...]:
    return tuple(
        f"{h.name} : {h.type}" + (f" := {h.value}" if h.value is not None else "")
        for h in goal.hypotheses
    )


def estimate_difficulty(text: str, context: Sequence[str] = ()) -> float:
    """Return a guess of a goal's difficulty from its text: 0 is trivial, 1 is hopeless.

    The guess grows with the number of symbols, quantifiers and recursive functions. It decides
    the goal's lane only, so it may be wrong; it has to be cheap and reproducible.
    """
    whole = " ".join([*context, text])
    symbols = _SYMBOLS.findall(whole)
    size = len(symbols) / (len(symbols) + _SIZE_SCALE)
    hard = sum(_HARD_SYMBOLS.get(symbol, 0.0) for symbol in symbols)
    recursion = 0.07 * len(set(_RECURSIVE.findall(whole)))
    return round(min(1.0, _LEAST_DIFFICULTY + size + min(0.45, hard) + min(0.3, recursion)), 3)
