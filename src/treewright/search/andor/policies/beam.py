"""Beam search over goals: one level of partial solutions at a time.

A partial solution is the set of goals that are left; all of them must be solved, so the goals that
an edge leaves stay together. Each partial solution works on its goal with the lowest estimate. A
level is complete when each of these goals has had its simulations. Every live edge of such a goal
then gives a partial solution of the next level, and the best `width` of them are kept.

When no level has anything left to do, the search starts again with twice the width and one more
simulation for each goal. So with enough simulations every goal is tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop
from math import prod
from typing import ClassVar, NamedTuple

import msgspec

from treewright.search.andor.graph import Edge, Graph, Node, Status
from treewright.search.andor.policies.goal_policy import Descent, Policy, Share
from treewright.search.andor.visits import Backup, Step
from treewright.search.policies.policy import AtLeastOne


class Beam(Policy, msgspec.Struct, frozen=True, tag="beam"):
    """Beam search.

    Attributes:
        width: How many partial solutions of a level are kept.
        turns: How many simulations each goal gets.
    """

    name: ClassVar[str] = "beam"
    summary: ClassVar[str] = (
        "one level of partial solutions at a time, of which the best are extended"
    )

    width: AtLeastOne = 8
    turns: AtLeastOne = 1
    discount: Share = 0.97
    backup: Backup = "product"

    def choose(self, graph: Graph, seed: int) -> Descent:
        width, simulations = self.width, self.turns
        while True:
            level = [_Partial({graph.root.id: _Goal(graph.root, None, None)})]
            while level:
                for partial in level:
                    node = partial.next.node
                    if not node.exhausted and node.tries < simulations:
                        return _descent_to(partial.next)
                level = self._next_level(level, width)
            width, simulations = 2 * width, simulations + 1

    def _next_level(self, level: Iterable[_Partial], width: int) -> list[_Partial]:
        """Return the best different partial solutions of the next level, the first of equals."""
        ranked: list[tuple[float, int, _Partial, Edge]] = []
        for partial in level:
            for edge in partial.next.node.live:
                value = partial.value_with(edge, self)
                ranked.append((-value, len(ranked), partial, edge))
        heapify(ranked)
        following: dict[frozenset[int], _Partial] = {}
        while ranked and len(following) < width:
            _, _, partial, edge = heappop(ranked)
            goals = partial.goals_with(edge)
            following.setdefault(frozenset(goals), _Partial(goals, partial.steps + 1))
        return list(following.values())


class _Goal(NamedTuple):
    """A goal of a partial solution, with the goal above and the edge that leads to it."""

    node: Node
    above: _Goal | None
    edge: Edge | None


class _Partial:
    """The unsolved goals of a partial solution, at least one, by id."""

    __slots__ = ("goals", "next", "others", "steps")

    def __init__(self, goals: dict[int, _Goal], steps: int = 0) -> None:
        self.goals = goals
        self.steps = steps
        self.next = min(goals.values(), key=lambda goal: goal.node.estimate)
        self.others = [goal.node.estimate for goal in goals.values() if goal is not self.next]

    def value_with(self, edge: Edge, policy: Beam) -> float:
        """Return the value of the partial solution in which an edge replaces the next goal."""
        estimates = self.others + [
            child.estimate
            for child in edge.children
            if child.status is Status.OPEN and child.id not in self.goals
        ]
        together = prod(estimates) if policy.backup == "product" else min(estimates)
        return policy.discount ** (self.steps + 1) * together

    def goals_with(self, edge: Edge) -> dict[int, _Goal]:
        """Return the goals in which those of an edge replace the next goal."""
        goals = self.goals.copy()
        del goals[self.next.node.id]
        for child in edge.children:
            if child.status is Status.OPEN:
                goals.setdefault(child.id, _Goal(child, self.next, edge))
        return goals


def _descent_to(goal: _Goal) -> Descent:
    path: list[Step] = []
    above, edge = goal.above, goal.edge
    while above is not None and edge is not None:
        path.append((above.node, edge))
        above, edge = above.above, above.edge
    return path[::-1], goal.node
