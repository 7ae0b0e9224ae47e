"""The new and removed `sorry`s of a change, and whether the check fails. Pure.

A `sorry` is identified by its declaration and its goal, so it stays the same if lines above it
change or if its declaration moves to another file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Literal

import msgspec

from treewright.lean.sorries import FileSorries, Sorry
from treewright.proving.records import GoalStatus

_NUMBERED = re.compile(r"(\?[\w✝.]*?|_uniq)\.\d+")


class OpenGoal(msgspec.Struct, frozen=True):
    """One `sorry` of a file. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    declaration: str
    goal: str


def open_goals(found: FileSorries, name: str) -> Iterator[OpenGoal]:
    """Yield the open goals of a file that is shown as `name`."""
    for sorry in found.sorries:
        yield OpenGoal(name, sorry.line, sorry.column + 1, sorry.declaration, goal_text(sorry))


def goal_text(sorry: Sorry) -> str:
    """Return the goals of a sorry as Lean shows them, without the numbers of metavariables."""
    shown = "\n\n".join(goal.pretty for goal in sorry.goals)
    return _NUMBERED.sub(r"\1", shown)


def compare(
    base: Sequence[OpenGoal], head: Sequence[OpenGoal]
) -> tuple[list[OpenGoal], list[OpenGoal]]:
    """Return the new goals and the removed goals, each in the original order."""
    new, gone = list(head), list(base)
    for key in (lambda g: (g.file, g.declaration, g.goal), lambda g: (g.declaration, g.goal)):
        new, gone = _without_known(new, gone, key), _without_known(gone, new, key)
    return new, gone


def _without_known(
    goals: Sequence[OpenGoal], known: Sequence[OpenGoal], key: Callable[[OpenGoal], Hashable]
) -> list[OpenGoal]:
    """Return the goals that are not in `known`; of equal goals, the first count as known."""
    counts = Counter(map(key, known))
    left: list[OpenGoal] = []
    for goal in goals:
        if counts[key(goal)]:
            counts[key(goal)] -= 1
        else:
            left.append(goal)
    return left


FailOn = Literal["never", "new-sorry", "unproved"]
Status = GoalStatus | Literal["unchecked", "untried"]


class Attempt(msgspec.Struct, frozen=True):
    """A new `sorry` and the result of its search. Without a verdict, `detail` gives the reason."""

    sorry: OpenGoal
    status: Status = "untried"
    detail: str = ""
    proof: str = ""


class Problem(msgspec.Struct, frozen=True):
    """A file that Lean could not read without errors; it may have further sorries."""

    file: str
    error: str


class Findings(msgspec.Struct, frozen=True):
    """The document of `treewright ci --json`. `notes` concern the base and fail no check."""

    base: str
    files: tuple[str, ...]
    new: tuple[Attempt, ...] = ()
    removed: tuple[OpenGoal, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    patch: str = ""

    @property
    def unproved(self) -> tuple[Attempt, ...]:
        """Return the new sorries without an accepted proof."""
        return tuple(attempt for attempt in self.new if attempt.status != "proved")

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers for the headline and for the outputs of a workflow step."""
        return {
            "new": len(self.new),
            "removed": len(self.removed),
            "proved": len(self.new) - len(self.unproved),
            "unproved": len(self.unproved),
            "problems": len(self.problems),
        }


def fails(findings: Findings, on: FailOn) -> bool:
    """Return whether the check fails. A file that Lean could not read fails it too."""
    if on == "never":
        return False
    open_goals = findings.new if on == "new-sorry" else findings.unproved
    return bool(open_goals or findings.problems)
