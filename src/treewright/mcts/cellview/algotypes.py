"""The algotypes: how a cell chooses a way at a node, from what it saw there and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from math import log, sqrt
from random import Random

from treewright.mcts.cellview.settings import Algotype
from treewright.mcts.cellview.sight import Sight, Way
from treewright.mcts.policy import Policy

Pick = Callable[[Sight, list[Way], Policy, Random], Way]
"""Chooses among ways, a part of those of the sight. There is at least one."""

Widens = Callable[[Sight, Policy, Random], bool]
"""Whether to try another tactic at a node before its known ways are followed."""


def puct(sight: Sight, ways: list[Way], policy: Policy, _: Random) -> Way:
    """Value plus exploration by prior; without priors every way has the same one."""
    if len(ways) == 1:
        return ways[0]
    scale = policy.exploration * sqrt(_total_visits(sight))
    uniform = 1.0 / len(ways)
    base, own = policy.first_play * sight.value, 1.0 - policy.first_play
    best, best_score = ways[0], -1.0
    for way in ways:
        edge, tried, total, _child = way
        mean = total / tried if tried else base + own * edge.promise
        prior = uniform if edge.prior is None else edge.prior
        score = mean + scale * prior / (1 + tried)
        if score > best_score:
            best, best_score = way, score
    return best


def ucb(sight: Sight, ways: list[Way], policy: Policy, _: Random) -> Way:
    """Value plus exploration by how rarely a way was tried. Priors are not looked at."""
    if len(ways) == 1:
        return ways[0]
    scale = policy.exploration * sqrt(log(_total_visits(sight)))
    base, own = policy.first_play * sight.value, 1.0 - policy.first_play
    best, best_score = ways[0], -1.0
    for way in ways:
        edge, tried, total, _child = way
        mean = total / tried if tried else base + own * edge.promise
        score = mean + scale / sqrt(tried + 1)
        if score > best_score:
            best, best_score = way, score
    return best


def best_first(sight: Sight, ways: list[Way], policy: Policy, _: Random) -> Way:
    """The way that looks best; nothing for exploration."""
    return max(ways, key=lambda way: way[2] / way[1] if way[1] else way[0].promise)


def depth_first(sight: Sight, ways: list[Way], policy: Policy, _: Random) -> Way:
    """The first way, for as long as it lives."""
    return ways[0]


def at_random(sight: Sight, ways: list[Way], policy: Policy, rng: Random) -> Way:
    """Any way, all alike."""
    return ways[int(rng.random() * len(ways))]


def _total_visits(sight: Sight) -> int:
    return sight.visits + sight.virtual + 1


def progressively(sight: Sight, policy: Policy, _: Random) -> bool:
    """The more often a node was visited, the more ways it may have."""
    return len(sight.ways) < (
        policy.widen_base + policy.widen_scale * sight.visits**policy.widen_power
    )


def never(sight: Sight, policy: Policy, _: Random) -> bool:
    return False


def as_one_of_the_ways(sight: Sight, policy: Policy, rng: Random) -> bool:
    return rng.random() * (len(sight.ways) + 1) < 1.0


BEHAVIOUR: dict[Algotype, tuple[Pick, Widens]] = {
    "ucb": (ucb, progressively),
    "puct": (puct, progressively),
    "depth_first": (depth_first, never),
    "best_first": (best_first, progressively),
    "random": (at_random, as_one_of_the_ways),
}
