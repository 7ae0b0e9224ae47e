"""What was found out about a change, and whether that is a failure. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from treewright.ci.comparison import OpenGoal
from treewright.proving.records import GoalStatus

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
