"""The environment of a search: it applies tactics to nodes and returns the goals that are left.

Goals appear as views, which read the same in every process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from treewright.lean.session.answers import Goal, ProofState
from treewright.lean.session.knowledge import Knowledge
from treewright.proving.records import GoalView, OutcomeKind


class Subgoal(msgspec.Struct, frozen=True, gc=False):
    """Goals that a tactic left and that must be solved together; `layout` are their positions."""

    key: str
    goals: tuple[GoalView, ...]
    layout: tuple[int, ...] = ()


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The outcome of a tactic. `script` is the text to write in a proof, if that differs."""

    kind: OutcomeKind
    subgoals: tuple[Subgoal, ...] = ()
    ms: float = 0.0
    script: str = ""
    detail: str = ""


class Environment(Protocol):
    """The environment of one goal. It knows nodes by their numbers; the root is 0."""

    def root(self) -> Subgoal: ...

    def apply(self, node: int, tactic: str) -> Outcome: ...

    def bind(self, parent: int, tactic: str, children: Sequence[int]) -> None:
        """Tell which nodes the subgoals of the last outcome of `tactic` on `parent` became."""
        ...

    def knowledge(self, node: int) -> Knowledge:
        """Return lemmas and facts that may help with a node."""
        ...


_INTERNAL = re.compile(r"(\?m|\?u|_uniq|_fvar|_mvar)\.\d+")


def goal_groups(state: ProofState) -> tuple[tuple[int, ...], ...]:
    """Return the positions of a state's goals, grouped by which must be solved together.

    Groups are in order of their first goals. All goals that share a metavariable with another goal
    form one group: a script can close the single goals one by one, and then go on with that group.
    """
    single = [group for group in state.groups if len(group) == 1]
    linked = sorted(index for group in state.groups if len(group) > 1 for index in group)
    return tuple(sorted([*single, tuple(linked)] if linked else single))


def views(goals: Sequence[Goal]) -> tuple[GoalView, ...]:
    return tuple(_view(goal) for goal in goals)


def _view(goal: Goal) -> GoalView:
    hypotheses = tuple(
        msgspec.structs.replace(h, type=stable(h.type), value=h.value and stable(h.value))
        for h in goal.hypotheses
    )
    # Lean adds a scope to a case's name, with a number that depends on the session.
    case = goal.case and goal.case.partition("._@")[0]
    return GoalView(stable(goal.target), hypotheses, case)


def stable(text: str) -> str:
    """Number Lean's internal names by order of appearance; Lean's own numbers vary by session."""
    numbers: dict[str, int] = {}

    def renumber(found: re.Match[str]) -> str:
        return f"{found.group(1)}.{numbers.setdefault(found.group(0), len(numbers) + 1)}"

    return _INTERNAL.sub(renumber, text)
