"""The open ends of a project: every `sorry` with its goal, and goals for the scheduler.

Finding them is Lean's work (`lean.sorries`); a declaration with several is one goal, because
only as a whole can it be proved.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from treewright.lean.session.answers import Goal as LeanGoal
from treewright.lean.sorries import FileSorries, Sorry
from treewright.orchestrator.goals import difficulty
from treewright.orchestrator.types import Goal, Place

_NAMELESS = ("", "_example")


class SorryRecord(msgspec.Struct, frozen=True):
    """One `sorry` as `treewright sorries --json` prints it. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    declaration: str
    goal: str
    context: tuple[str, ...]
    imports: tuple[str, ...]
    difficulty: float


def records(found: FileSorries, root: Path) -> Iterator[SorryRecord]:
    for sorry in found.sorries:
        goal = sorry.goal
        context = _context(goal)
        yield SorryRecord(
            relative(found.path, root),
            sorry.line,
            sorry.column + 1,
            sorry.declaration,
            goal.target,
            context,
            sorry.imports,
            difficulty.estimate(goal.target, context),
        )


def goals(found: FileSorries, root: Path) -> Iterator[Goal]:
    """A goal for each named declaration with a `sorry`, in order of the file."""
    by_declaration: dict[str, list[Sorry]] = {}
    for sorry in found.sorries:
        if sorry.declaration not in _NAMELESS:
            by_declaration.setdefault(sorry.declaration, []).append(sorry)
    name = relative(found.path, root)
    for declaration, sorries in by_declaration.items():
        holes = tuple((sorry.start, sorry.end) for sorry in sorries)
        shown = sorries[0].goal
        context = _context(shown)
        hardest = max(difficulty.estimate(s.goal.target, _context(s.goal)) for s in sorries)
        yield Goal(
            id=f"{name}:{declaration}",
            text=shown.target,
            context=context,
            estimated_difficulty=hardest,
            imports=sorries[0].imports,
            goal_class="project",
            place=Place(
                file=name,
                source=found.source,
                declaration=declaration,
                holes=holes,
                tactic_holes=frozenset((s.start, s.end) for s in sorries if s.tactic),
            ),
        )


def unnamed(found: FileSorries) -> list[Sorry]:
    """What the replay check cannot name, and so cannot call proved: `example`s."""
    return [sorry for sorry in found.sorries if sorry.declaration in _NAMELESS]


def relative(path: Path, root: Path) -> str:
    base = root if root.is_dir() else root.parent
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)


def _context(goal: LeanGoal) -> tuple[str, ...]:
    return tuple(
        f"{h.name} : {h.type}" + (f" := {h.value}" if h.value is not None else "")
        for h in goal.hypotheses
    )
