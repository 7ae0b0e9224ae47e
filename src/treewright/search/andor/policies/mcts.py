"""Monte Carlo tree search: selection, widening and back-up, as pure functions of the graph.

PUCT (Silver et al. 2017) where edges have priors, UCB1 (Auer et al. 2002) where they have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from treewright.search.andor.graph import Edge, Graph, Node, Status
from treewright.search.andor.policies.goal_policy import Descent, Policy, Share
from treewright.search.andor.visits import Backup, Step
from treewright.search.policies.policy import NotNegative


class Mcts(Policy, msgspec.Struct, frozen=True, tag="mcts"):
    """Monte Carlo tree search.

    The value of an edge without visits is `first_play` times the value of its parent, plus
    `1 - first_play` times the promise of the edge. A node gets further actions while it has fewer
    than `widen_base + widen_scale * visits ** widen_power` edges; then its edges are followed.

    Attributes:
        exploration: The weight of exploration against value.
    """

    name: ClassVar[str] = "mcts"
    summary: ClassVar[str] = "Monte Carlo tree search (PUCT or UCB1) with progressive widening"

    exploration: Annotated[
        NotNegative, Meta(description="Exploration constant of PUCT, UCB1 and the cells.")
    ] = 1.2
    first_play: Annotated[
        Share, Meta(description="First-play urgency, as a share of the parent's value, 0 to 1.")
    ] = 0.5
    discount: Annotated[
        Share, Meta(description="Factor by which each step reduces the value of a goal, 0 to 1.")
    ] = 0.97
    widen_base: Annotated[
        NotNegative, Meta(description="Live edges that a node may have before its first visit.")
    ] = 0.0
    widen_scale: Annotated[
        NotNegative,
        Meta(description="Further live edges per (visits ** --widen-power) of a node."),
    ] = 1.0
    widen_power: Annotated[
        Share, Meta(description="Power of the visits in progressive widening, 0 to 1.")
    ] = 0.5
    backup: Annotated[
        Backup, Meta(description="Value of an edge with several goals: their product or minimum.")
    ] = "product"

    def choose(self, graph: Graph, seed: int) -> Descent:
        node = graph.root
        path: list[Step] = []
        while node.live and (node.exhausted or not may_widen(node, self)):
            edge = select_edge(node, self)
            path.append((node, edge))
            node = select_child(edge)
        return path, node


def select_edge(node: Node, policy: Mcts) -> Edge:
    """Return the live edge to follow."""
    live = node.live
    if len(live) == 1:
        return live[0]
    return ucb1(node, live, policy) if live[0].prior is None else puct(node, live, policy)


def puct(node: Node, edges: Sequence[Edge], policy: Mcts) -> Edge:
    """Return the edge with the highest PUCT score. A reservation counts as a visit of value 0."""
    best = edges[0]
    best_score = -1.0
    first = policy.first_play * node.value
    trust = 1.0 - policy.first_play
    scale = policy.exploration * sqrt(node.visits + node.virtual + 1)
    for edge in edges:
        tried = edge.visits + edge.virtual
        mean = edge.total / tried if tried else first + trust * edge.promise
        score = mean + scale * (edge.prior or 0.0) / (1 + tried)
        if score > best_score:
            best, best_score = edge, score
    return best


def ucb1(node: Node, edges: Sequence[Edge], policy: Mcts) -> Edge:
    """Return the edge with the highest UCB1 score. A reservation counts as a visit of value 0."""
    best = edges[0]
    best_score = -1.0
    first = policy.first_play * node.value
    trust = 1.0 - policy.first_play
    scale = policy.exploration * sqrt(log(node.visits + node.virtual + 1))
    for edge in edges:
        tried = edge.visits + edge.virtual
        mean = edge.total / tried if tried else first + trust * edge.promise
        score = mean + scale / sqrt(tried + 1)
        if score > best_score:
            best, best_score = edge, score
    return best


def select_child(edge: Edge) -> Node:
    """Return the unsolved goal with the fewest visits, the first of equals."""
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


def may_widen(node: Node, policy: Mcts) -> bool:
    """Return whether another action should be tried before the edges are followed."""
    return len(node.live) < (
        policy.widen_base + policy.widen_scale * node.visits**policy.widen_power
    )
