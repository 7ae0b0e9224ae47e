"""The algotypes: how a cell chooses at a node. They look at the node and its edges only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from treewright.proving.cell_settings import Algotype
from treewright.search.andor.graph import Edge, Node
from treewright.search.andor.policies.mcts import Mcts, may_widen, puct, ucb1

Pick = Callable[[Node, Sequence[Edge], Mcts], Edge]
"""Chooses an edge among some of a node's, at least one."""

Widens = Callable[[Node, Mcts], bool]
"""Whether to try another tactic at a node before its edges are followed."""


def behaviour(algotype: Algotype, rng: Random) -> tuple[Pick, Widens]:
    """The rules of an algotype; `rng` is the cell's own."""
    match algotype:
        case "ucb":
            return ucb1, may_widen
        case "puct":
            return _by_prior, may_widen
        case "best_first":
            return _best, may_widen
        case "depth_first":
            return _first, _never
        case "random":
            return _any(rng), _as_likely_as_an_edge(rng)


def _by_prior(node: Node, edges: Sequence[Edge], policy: Mcts) -> Edge:
    """PUCT; where the tactic source gave no priors there is only UCB1 to go by."""
    return ucb1(node, edges, policy) if edges[0].prior is None else puct(node, edges, policy)


def _best(node: Node, edges: Sequence[Edge], policy: Mcts) -> Edge:
    """The edge that looks best; nothing for exploration."""
    best, best_value = edges[0], -1.0
    for edge in edges:
        followed = edge.visits + edge.virtual
        value = edge.total / followed if followed else edge.promise
        if value > best_value:
            best, best_value = edge, value
    return best


def _first(node: Node, edges: Sequence[Edge], policy: Mcts) -> Edge:
    """The first edge, for as long as it lives."""
    return edges[0]


def _never(node: Node, policy: Mcts) -> bool:
    return False


def _any(rng: Random) -> Pick:
    return lambda node, edges, policy: edges[int(rng.random() * len(edges))]


def _as_likely_as_an_edge(rng: Random) -> Widens:
    return lambda node, policy: rng.random() * (len(node.live) + 1) < 1.0
