"""Beam: one level of partial solutions at a time, the best of each go on.

A partial solution is the goals that are left, all of which must be solved: so the goals that an
edge leaves stay together. A level is complete when the worst-looking goal of each of its partial
solutions has had its turns; every live edge found there gives a partial solution of the next level,
and the best `width` of them are kept. That is a barrier: nothing of the next level before.

When no level has anything left to do, the beam starts over, twice as wide and with one turn more
for each goal: with enough simulations nothing is left out for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop
from math import prod
from typing import ClassVar, NamedTuple

import msgspec

from treewright.search.andor.graph import Edge, Graph, Node, Status
from treewright.search.andor.policies.base import Policy, Share, Way
from treewright.search.andor.statistics import Backup, Step
from treewright.search.policies.base import AtLeastOne


class Beam(Policy, msgspec.Struct, frozen=True, tag="beam"):
    """`width` partial solutions of a level go on, each goal with `turns` simulations."""

    name: ClassVar[str] = "beam"
    summary: ClassVar[str] = "one level of partial solutions at a time, the best of each go on"

    width: AtLeastOne = 8
    turns: AtLeastOne = 1
    discount: Share = 0.97
    backup: Backup = "product"

    def choose(self, graph: Graph, seed: int) -> Way:
        width, turns = self.width, self.turns
        while True:
            way = self._pass(graph.root, width, turns)
            if way is not None:
                return way
            width, turns = 2 * width, turns + 1

    def _pass(self, root: Node, width: int, turns: int) -> Way | None:
        """The first goal that has a turn left, level by level."""
        level = [_Partial({root.id: _Place(root, None, None)})]
        while level:
            for partial in level:
                node = partial.next.node
                if not node.exhausted and node.tries < turns:
                    return _way_to(partial.next)
            level = self._best(level, width)
        return None

    def _best(self, level: Iterable[_Partial], width: int) -> list[_Partial]:
        """What goes on: the best of the next level, the first of equals, none twice."""
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


class _Place(NamedTuple):
    """A goal, and how it was come by."""

    node: Node
    above: _Place | None
    edge: Edge | None


_Goals = dict[int, _Place]


class _Partial:
    """The goals that are left of a partial solution, at least one. Solved ones are not in it."""

    __slots__ = ("goals", "next", "others", "steps")

    def __init__(self, goals: _Goals, steps: int = 0) -> None:
        self.goals = goals
        self.steps = steps
        self.next = min(goals.values(), key=_looks)
        self.others = [place.node.estimate for place in goals.values() if place is not self.next]

    def value_with(self, edge: Edge, policy: Beam) -> float:
        """How good it looks when the next goal is replaced by what an edge leaves of it."""
        estimates = self.others + [
            child.estimate
            for child in edge.children
            if child.status is Status.OPEN and child.id not in self.goals
        ]
        together = prod(estimates) if policy.backup == "product" else min(estimates)
        return policy.discount ** (self.steps + 1) * together

    def goals_with(self, edge: Edge) -> _Goals:
        goals = self.goals.copy()
        del goals[self.next.node.id]
        for child in edge.children:
            if child.status is Status.OPEN:
                goals.setdefault(child.id, _Place(child, self.next, edge))
        return goals


def _looks(place: _Place) -> float:
    return place.node.estimate


def _way_to(place: _Place) -> Way:
    path: list[Step] = []
    above, edge = place.above, place.edge
    while above is not None and edge is not None:
        path.append((above.node, edge))
        above, edge = above.above, above.edge
    return path[::-1], place.node
