"""What a cell saw of a node, and when: its own numbers, which age while others work on."""

from __future__ import annotations

from treewright.mcts.policy import select_child
from treewright.mcts.prooftree import Edge, Node

Way = tuple[Edge, int, float, Node]
"""A live edge, how often it was tried or is being tried, their sum of values, and its next goal."""


class Sight:
    """A node as it looked at one tick."""

    __slots__ = ("tick", "value", "virtual", "visits", "ways")

    def __init__(self, node: Node, tick: int) -> None:
        self.tick = tick
        self.visits = node.visits
        self.virtual = node.virtual
        self.value = node.value
        self.ways: list[Way] = [
            (edge, edge.visits + edge.virtual, edge.total, select_child(edge)) for edge in node.live
        ]
