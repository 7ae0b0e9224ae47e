"""What a search works on: apply a tactic to a node, see what goals it leaves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

import msgspec

from treewright.lean.session.answers import Goal, ProofState
from treewright.lean.session.knowledge import Knowledge
from treewright.proving.records import GoalView, OutcomeKind


class Subgoal(msgspec.Struct, frozen=True, gc=False):
    """Goals that a tactic left and that must be solved together; `layout` is their positions."""

    key: str
    goals: tuple[GoalView, ...]
    layout: tuple[int, ...] = ()


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What a tactic did. `script` is what to write for it, if that differs."""

    kind: OutcomeKind
    subgoals: tuple[Subgoal, ...] = ()
    ms: float = 0.0
    script: str = ""
    detail: str = ""


class Environment(Protocol):
    """The world of one goal. Nodes are known to it by number; the root is 0."""

    def root(self) -> Subgoal: ...

    def apply(self, node: int, tactic: str) -> Outcome: ...

    def bind(self, parent: int, tactic: str, children: Sequence[int]) -> None:
        """Says which nodes the goals of the last outcome of `tactic` on `parent` became."""
        ...

    def knowledge(self, node: int) -> Knowledge:
        """What is known that may help with a node."""
        ...


_INTERNAL = re.compile(r"(\?m|\?u|_uniq|_fvar|_mvar)\.\d+")


def goal_groups(state: ProofState) -> tuple[tuple[int, ...], ...]:
    """The goals of a state by what must be solved together, in order of their first goals.

    Goals that share metavariables with others form one group, all of them: a script can close
    the single goals one by one and then go on with the rest.
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
    # Lean adds a scope to a case's name; the number in it depends on the session.
    case = goal.case and goal.case.partition("._@")[0]
    return GoalView(stable(goal.target), hypotheses, case)


def stable(text: str) -> str:
    """Lean numbers what has no name as it goes; here by order of appearance instead."""
    numbers: dict[str, int] = {}

    def renumber(found: re.Match[str]) -> str:
        return f"{found.group(1)}.{numbers.setdefault(found.group(0), len(numbers) + 1)}"

    return _INTERNAL.sub(renumber, text)
