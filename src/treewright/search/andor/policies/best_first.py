"""Best first: the goal that the most promising solution still lacks.

The outlook of a goal is that of its best way on: to try further actions there, or to follow an
edge, which needs all its goals and is worth their product (or the least). Going down by outlook
leads to the open goals of the one partial solution that looks best as a whole (as AO* does, Nilsson
1980); of several goals that an edge leaves, the worst is next, for if it fails the others were in
vain. Outlooks are brought up to date along the changed part only.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import prod
from typing import ClassVar

import msgspec

from treewright.search.andor.graph import Changes, Edge, Graph, Node, Status
from treewright.search.andor.policies.base import Policy, Share, Way
from treewright.search.andor.statistics import Backup, Step, back_up


class BestFirst(Policy, msgspec.Struct, frozen=True, tag="best-first"):
    """`patience` is what each turn at a goal leaves of the hope in further ones there."""

    name: ClassVar[str] = "best-first"
    summary: ClassVar[str] = "the goal that the most promising solution still lacks"

    patience: Share = 0.5
    discount: Share = 0.8
    backup: Backup = "product"

    def choose(self, graph: Graph, seed: int) -> Way:
        node = graph.root
        path: list[Step] = []
        while node.live:
            edge, outlook = self._best_edge(node)
            if not node.exhausted and self._here(node) >= outlook:
                break
            path.append((node, edge))
            unsolved = (child for child in edge.children if child.status is Status.OPEN)
            node = min(unsolved, key=lambda child: child.outlook)
        return path, node

    def learn(self, graph: Graph, way: Way, value: float, changes: Changes) -> None:
        path, leaf = way
        back_up(path, leaf, value, self)
        waiting: list[tuple[int, int]] = []
        seen: set[int] = set()

        def enter(node: Node) -> None:
            if node.id not in seen:
                seen.add(node.id)
                heappush(waiting, (-node.rank, node.id))

        for node in (leaf, *changes.solved, *changes.dead):
            enter(node)
        while waiting:  # by rank: a goal's outlook is final before those above look at it
            node = graph.nodes[heappop(waiting)[1]]
            outlook = self.outlook(node)
            if outlook != node.outlook:
                node.outlook = outlook
                for edge in node.parents:
                    enter(edge.parent)

    def outlook(self, node: Node) -> float:
        """From the outlooks of the goals right below."""
        if node.status is not Status.OPEN:
            return node.value
        here = 0.0 if node.exhausted else self._here(node)
        return max(here, self._best_edge(node)[1]) if node.live else here

    def _here(self, node: Node) -> float:
        """What is hoped from further actions at the goal itself."""
        return node.estimate * self.patience**node.tries

    def _best_edge(self, node: Node) -> tuple[Edge, float]:
        """The first of the best."""
        best, best_outlook = node.live[0], -1.0
        for edge in node.live:
            outlooks = [child.outlook for child in edge.children]
            outlook = self.discount * (prod if self.backup == "product" else min)(outlooks)
            if outlook > best_outlook:
                best, best_outlook = edge, outlook
        return best, best_outlook
