"""What a search works on: apply a tactic to a node, see what goals it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from treewright.lean.knowledge import Knowledge
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
