"""What visits leave behind in an AND/OR graph: counts and values along the way that was taken.

The value of a goal is how likely it is to be solvable: 1 when solved, 0 when dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from treewright.search.andor.graph import Edge, Node

Backup = Literal["product", "min"]
Step = tuple[Node, Edge]


class Worth(Protocol):
    """What an edge is worth, given its goals: `discount` makes the shorter way the better one."""

    @property
    def discount(self) -> float: ...

    @property
    def backup(self) -> Backup: ...


def back_up(
    path: Sequence[Step], leaf: Node, value: float, worth: Worth, released: int = 0
) -> None:
    """Adds one visit worth `value` at the leaf, and what follows from it along the path; so many
    reservations of it are `released`.

    An edge is worth the product (or the least) of its goals' values; the goal that was visited
    enters with the value it was just found to have.
    """
    leaf.tries += 1
    leaf.visits += 1
    leaf.total += value
    leaf.virtual -= released
    child = leaf
    discount = worth.discount
    product = worth.backup == "product"
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
    """Marks a way as being worked on, so that others look elsewhere (virtual loss)."""
    leaf.virtual += 1
    for node, edge in path:
        node.virtual += 1
        edge.virtual += 1


def release(path: Sequence[Step], leaf: Node) -> None:
    leaf.virtual -= 1
    for node, edge in path:
        node.virtual -= 1
        edge.virtual -= 1
