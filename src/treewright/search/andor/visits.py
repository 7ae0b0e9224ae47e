"""The statistics of visits in an AND/OR graph: counts and values along the path of each visit.

The value of a goal is the probability that it can be solved: 1 if it is solved, 0 if it is dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from treewright.search.andor.graph import Edge, Node

if TYPE_CHECKING:
    from treewright.search.andor.policies.goal_policy import Policy

Backup = Literal["product", "min"]
Step = tuple[Node, Edge]


def back_up(
    path: Sequence[Step], leaf: Node, value: float, policy: Policy, released: int = 0
) -> None:
    """Add one visit of a leaf, and the values that follow from it along the path.

    Args:
        path: The steps from the root to the leaf.
        leaf: The goal that was visited.
        value: The value of this visit of the leaf. It enters the values of the edges above instead
            of the mean of the leaf.
        policy: Its `discount` and `backup` give the value of an edge from those of its goals.
        released: How many reservations of the path end with this visit.
    """
    leaf.tries += 1
    leaf.visits += 1
    leaf.total += value
    leaf.virtual -= released
    child = leaf
    discount = policy.discount
    product = policy.backup == "product"
    for node, edge in reversed(path):
        value *= discount
        children = edge.children
        if len(children) > 1:
            for sibling in children:
                if sibling is not child:
                    other = sibling.value
                    value = value * other if product else min(value, other)
        edge.visits += 1
        edge.total += value
        edge.virtual -= released
        node.visits += 1
        node.total += value
        node.virtual -= released
        child = node


def reserve(path: Sequence[Step], leaf: Node) -> None:
    """Reserve a path, so that other agents prefer different ones (virtual loss)."""
    leaf.virtual += 1
    for node, edge in path:
        node.virtual += 1
        edge.virtual += 1


def release(path: Sequence[Step], leaf: Node) -> None:
    """End a reservation without a visit."""
    leaf.virtual -= 1
    for node, edge in path:
        node.virtual -= 1
        edge.virtual -= 1
