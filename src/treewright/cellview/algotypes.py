"""The algotypes: how a cell chooses at a node. They use only the node and its edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from treewright.proving.cell_settings import Algotype
from treewright.search.andor.graph import Edge, Node
from treewright.search.andor.policies.mcts import Mcts, may_widen, puct, ucb1

Pick = Callable[[Node, Sequence[Edge], Mcts], Edge]
"""Chooses one of some edges of a node; there is at least one."""

Widens = Callable[[Node, Mcts], bool]
"""Returns whether to try another tactic at a node before an edge is followed."""


def rules_of(algotype: Algotype, rng: Random) -> tuple[Pick, Widens]:
    """Return the rules of an algotype; `rng` belongs to the cell."""
    match algotype:
        case "ucb":
            return ucb1, may_widen
        case "puct":
            return _puct_or_ucb, may_widen
        case "best_first":
            return _best_edge, may_widen
        case "depth_first":
            return _first_edge, _never_widen
        case "random":
            return _random_edge(rng), _widen_like_an_edge(rng)


def _puct_or_ucb(node: Node, edges: Sequence[Edge], policy: Mcts) -> Edge:
    """Choose by PUCT, or by UCB1 if the tactic source gave no priors."""
    return ucb1(node, edges, policy) if edges[0].prior is None else puct(node, edges, policy)


def _best_edge(node: Node, edges: Sequence[Edge], policy: Mcts) -> Edge:
    """Choose the edge with the best value, without exploration."""
    best, best_value = edges[0], -1.0
    for edge in edges:
        followed = edge.visits + edge.virtual
        value = edge.total / followed if followed else edge.promise
        if value > best_value:
            best, best_value = edge, value
    return best


def _first_edge(node: Node, edges: Sequence[Edge], policy: Mcts) -> Edge:
    """Choose the first edge that is alive."""
    return edges[0]


def _never_widen(node: Node, policy: Mcts) -> bool:
    return False


def _random_edge(rng: Random) -> Pick:
    return lambda node, edges, policy: edges[int(rng.random() * len(edges))]


def _widen_like_an_edge(rng: Random) -> Widens:
    return lambda node, policy: rng.random() * (len(node.live) + 1) < 1.0
