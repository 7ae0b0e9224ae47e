"""How the centralized engine decides: selection, widening, back-up. Pure functions of the tree.

PUCT (Silver et al. 2017) where edges have priors, UCB1 (Auer et al. 2002) where they have none.
The value of a goal is its estimated provability: 1 when solved, 0 when dead.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Literal

import msgspec

from treewright.mcts.prooftree import Edge, Node, Status

Backup = Literal["product", "min"]


class Policy(msgspec.Struct, frozen=True):
    """The constants of a search.

    An edge never followed counts as worth `first_play` of its parent's value and the rest of
    its own promise. `discount` makes the shorter of two equal ways the better one. A node may
    have `widen_base + widen_scale * visits ** widen_power` edges before they are followed.
    """

    exploration: float = 1.2
    first_play: float = 0.5
    discount: float = 0.97
    widen_base: float = 0.0
    widen_scale: float = 1.0
    widen_power: float = 0.5
    backup: Backup = "product"


def select_edge(node: Node, policy: Policy) -> Edge:
    """The live edge to follow."""
    live = node.live
    if len(live) == 1:
        return live[0]
    return ucb1(node, live, policy) if live[0].prior is None else puct(node, live, policy)


def puct(node: Node, edges: Sequence[Edge], policy: Policy) -> Edge:
    """Explores by prior. Reservations of others count as visits that came to nothing."""
    best = edges[0]
    best_score = -1.0
    scale = policy.exploration * sqrt(node.visits + node.virtual + 1)
    for edge in edges:
        tried = edge.visits + edge.virtual
        mean = edge.total / tried if tried else _first_play(node, edge, policy)
        score = mean + scale * (edge.prior or 0.0) / (1 + tried)
        if score > best_score:
            best, best_score = edge, score
    return best


def ucb1(node: Node, edges: Sequence[Edge], policy: Policy) -> Edge:
    """Explores by how rarely an edge was followed. Reservations count as above."""
    best = edges[0]
    best_score = -1.0
    scale = policy.exploration * sqrt(log(node.visits + node.virtual + 1))
    for edge in edges:
        tried = edge.visits + edge.virtual
        mean = edge.total / tried if tried else _first_play(node, edge, policy)
        score = mean + scale / sqrt(tried + 1)
        if score > best_score:
            best, best_score = edge, score
    return best


def _first_play(node: Node, edge: Edge, policy: Policy) -> float:
    return policy.first_play * node.value + (1.0 - policy.first_play) * edge.promise


def select_child(edge: Edge) -> Node:
    """The goal to work on next: the unsolved one that was visited least, the first of equals."""
    children = edge.children
    best = children[0]
    if len(children) == 1:
        return best
    least = -1
    for child in children:
        if child.status is Status.SOLVED:
            continue
        visits = child.visits + child.virtual
        if least < 0 or visits < least:
            best, least = child, visits
    return best


def may_widen(node: Node, policy: Policy) -> bool:
    """Whether another tactic should be tried here before the known ones are followed further."""
    return len(node.live) < (
        policy.widen_base + policy.widen_scale * node.visits**policy.widen_power
    )


def back_up(path: Sequence[tuple[Node, Edge]], leaf: Node, value: float, policy: Policy) -> None:
    """Adds one visit worth `value` at the leaf, and what follows from it along the path.

    An edge is worth the product (or the least) of its goals' values; the goal that was visited
    enters with the value it was just found to have.
    """
    leaf.visits += 1
    leaf.total += value
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
        node.visits += 1
        node.total += value
        child = node


def reserve(path: Sequence[tuple[Node, Edge]], leaf: Node) -> None:
    """Marks a way as being worked on, so that others look elsewhere (virtual loss)."""
    leaf.virtual += 1
    for node, edge in path:
        node.virtual += 1
        edge.virtual += 1


def release(path: Sequence[tuple[Node, Edge]], leaf: Node) -> None:
    leaf.virtual -= 1
    for node, edge in path:
        node.virtual -= 1
        edge.virtual -= 1
