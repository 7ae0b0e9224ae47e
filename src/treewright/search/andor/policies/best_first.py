"""Best-first search over goals: a goal of the most promising partial solution (AO*, Nilsson 1980).

The outlook of a goal is the larger of two values: the value of further actions at the goal, and the
value of its best edge, which is the product (or the least) of the outlooks of the edge's goals. The
search follows the edges with the best outlook down to the open goals of one partial solution. Of
several goals that an edge leaves, the one with the worst outlook is next, because the edge fails if
that goal fails. Outlooks are updated along the changed part of the graph.
"""

from __future__ import annotations

from heapq import heappop, heappush
from math import prod
from typing import ClassVar

import msgspec

from treewright.search.andor.graph import Changes, Edge, Graph, Node, Status
from treewright.search.andor.policies.goal_policy import Descent, Policy, Share
from treewright.search.andor.visits import Backup, Step, back_up


class BestFirst(Policy, msgspec.Struct, frozen=True, tag="best-first"):
    """Best-first search.

    Attributes:
        patience: The factor by which each simulation at a goal reduces the value of further ones.
    """

    name: ClassVar[str] = "best-first"
    summary: ClassVar[str] = "the goal that the most promising solution still lacks"

    patience: Share = 0.5
    discount: Share = 0.8
    backup: Backup = "product"

    def choose(self, graph: Graph, seed: int) -> Descent:
        node = graph.root
        path: list[Step] = []
        while node.live:
            edge, outlook = self._best_edge(node)
            if not node.exhausted and self._value_of_actions(node) >= outlook:
                break
            path.append((node, edge))
            unsolved = (child for child in edge.children if child.status is Status.OPEN)
            node = min(unsolved, key=lambda child: child.outlook)
        return path, node

    def learn(self, graph: Graph, descent: Descent, value: float, changes: Changes) -> None:
        path, leaf = descent
        back_up(path, leaf, value, self)
        waiting: list[tuple[int, int]] = []
        seen: set[int] = set()

        def enter(node: Node) -> None:
            if node.id not in seen:
                seen.add(node.id)
                heappush(waiting, (-node.rank, node.id))

        for node in (leaf, *changes.solved, *changes.dead):
            enter(node)
        while waiting:  # by rank: the outlooks of all goals below are final
            node = graph.nodes[heappop(waiting)[1]]
            outlook = self.outlook(node)
            if outlook != node.outlook:
                node.outlook = outlook
                for edge in node.parents:
                    enter(edge.parent)

    def outlook(self, node: Node) -> float:
        """Return the outlook of a goal, from those of the goals below it."""
        if node.status is not Status.OPEN:
            return node.value
        value = 0.0 if node.exhausted else self._value_of_actions(node)
        return max(value, self._best_edge(node)[1]) if node.live else value

    def _value_of_actions(self, node: Node) -> float:
        """Return the value of further actions at the goal itself."""
        return node.estimate * self.patience**node.tries

    def _best_edge(self, node: Node) -> tuple[Edge, float]:
        """Return the edge with the best outlook, the first of equals, and its outlook."""
        best, best_outlook = node.live[0], -1.0
        for edge in node.live:
            outlooks = [child.outlook for child in edge.children]
            outlook = self.discount * (prod if self.backup == "product" else min)(outlooks)
            if outlook > best_outlook:
                best, best_outlook = edge, outlook
        return best, best_outlook
