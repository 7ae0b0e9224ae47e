"""The new and removed `sorry`s of a change, and whether the check fails. Pure."""

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
    """Those of a file that is shown as `name`."""
    for sorry in found.sorries:
        yield OpenGoal(name, sorry.line, sorry.column + 1, sorry.declaration, goal_text(sorry))


def goal_text(sorry: Sorry) -> str:
    """All that it leaves open, as Lean shows it; numbers that Lean counts up do not matter."""
    shown = "\n\n".join(goal.pretty for goal in sorry.goals)
    return _NUMBERED.sub(r"\1", shown)


def compare(
    base: Sequence[OpenGoal], head: Sequence[OpenGoal]
) -> tuple[list[OpenGoal], list[OpenGoal]]:
    """The new ones and those that are gone, each in its order."""
    new, gone = _unmatched(base, head, lambda g: (g.file, g.declaration, g.goal))
    return _unmatched(gone, new, lambda g: (g.declaration, g.goal))


def _unmatched(
    base: Sequence[OpenGoal], head: Sequence[OpenGoal], key: Callable[[OpenGoal], Hashable]
) -> tuple[list[OpenGoal], list[OpenGoal]]:
    return _beyond(head, Counter(map(key, base)), key), _beyond(base, Counter(map(key, head)), key)


def _beyond(
    goals: Sequence[OpenGoal], known: Counter[Hashable], key: Callable[[OpenGoal], Hashable]
) -> list[OpenGoal]:
    """Of equal ones, the first count as known."""
    left = []
    for goal in goals:
        if known[key(goal)]:
            known[key(goal)] -= 1
        else:
            left.append(goal)
    return left


FailOn = Literal["never", "new-sorry", "unproved"]
Status = GoalStatus | Literal["unchecked", "untried"]


class Attempt(msgspec.Struct, frozen=True):
    """A new `sorry` and what came of the search: a verdict, or none and why."""

    sorry: OpenGoal
    status: Status = "untried"
    detail: str = ""
    proof: str = ""


class Problem(msgspec.Struct, frozen=True):
    """A file that Lean could not read, or not without errors: there may be more in it."""

    file: str
    error: str


class Findings(msgspec.Struct, frozen=True):
    """What `treewright ci --json` prints. `notes` are about the base and fail nothing."""

    base: str
    files: tuple[str, ...]
    new: tuple[Attempt, ...] = ()
    removed: tuple[OpenGoal, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Problem, ...] = ()
    patch: str = ""

    @property
    def unproved(self) -> tuple[Attempt, ...]:
        return tuple(attempt for attempt in self.new if attempt.status != "proved")

    @property
    def counts(self) -> dict[str, int]:
        """For people and for the outputs of a step."""
        return {
            "new": len(self.new),
            "removed": len(self.removed),
            "proved": len(self.new) - len(self.unproved),
            "unproved": len(self.unproved),
            "problems": len(self.problems),
        }


def fails(findings: Findings, on: FailOn) -> bool:
    """A file that could not be read is no sign that nothing is open in it."""
    if on == "never":
        return False
    open_goals = findings.new if on == "new-sorry" else findings.unproved
    return bool(open_goals or findings.problems)
