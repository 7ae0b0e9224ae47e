"""Beam search: every node of the frontier gets its children, then the best children are next.

The policy waits at the end of a depth until the whole depth has outcomes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from random import Random
from typing import ClassVar

from treewright.search.policies.policy import AtLeastOne, Choice, Policy, any_action
from treewright.search.tree import Branch, Status, Tree


class Beam(Policy, frozen=True, tag="beam"):
    """Beam search.

    Attributes:
        width: How many nodes of a depth get children.
        children: How many children each of them gets, failed ones included.
        depth: The last depth; None for no limit.
    """

    name: ClassVar[str] = "beam"
    summary: ClassVar[str] = (
        "the best nodes of a depth, once all evaluations of the depth have ended"
    )
    has_barrier: ClassVar[bool] = True

    width: AtLeastOne = 4
    children: AtLeastOne = 4
    depth: AtLeastOne | None = None

    def choose(self, tree: Tree, rng: Random) -> Choice | None:
        deepest = len(tree.levels) - 1
        if deepest > 0:  # the depth above is complete, or this depth would have no choices
            unfinished = self._first_with_room(tree, deepest - 1)
            if unfinished is not None:
                return Choice(unfinished.number, any_action(tree, rng))
            if any(branch.status is Status.PENDING for branch in tree.levels[deepest]):
                return None
        if self.depth is not None and deepest >= self.depth:
            return None
        first = self._first_with_room(tree, deepest)
        return Choice(first.number, any_action(tree, rng)) if first is not None else None

    def _first_with_room(self, tree: Tree, depth: int) -> Branch | None:
        for branch in frontier(tree.levels[depth], self.width):
            if branch.tries < self.children and tree.can_grow(branch):
                return branch
        return None


def frontier(level: Iterable[Branch], width: int) -> list[Branch]:
    """Return the best open nodes of a depth, the older of equals, in the order of their numbers."""
    best = heapq.nsmallest(
        width, (b for b in level if b.status is Status.OPEN), key=lambda b: (-b.value, b.number)
    )
    return sorted(best, key=lambda b: b.number)
