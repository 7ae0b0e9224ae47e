"""Aggregation: whether neighbouring nodes are expanded by agents of the same algotype.

Neighbours are a node and the goals of its edges. The share of neighbours with equal labels is
compared with the share after a random permutation of the labels over the same tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from treewright.proving.measures.intervals import CONFIDENCE, upper_p
from treewright.proving.records import Iteration


class Aggregation(msgspec.Struct, frozen=True):
    """The share of `pairs` of neighbours with equal labels, and the null distribution.

    `p` is one-sided: the probability of at least this share by chance. `z` is None if the null does
    not vary.
    """

    pairs: int
    nodes: int
    share: float | None
    null_mean: float | None = None
    null_low: float | None = None
    null_high: float | None = None
    z: float | None = None
    p: float | None = None
    undefined: str | None = None


def expanders(iterations: Iterable[Iteration]) -> dict[int, str]:
    """Return, for each node of a goal, the algotype that first tried a tactic there."""
    labels: dict[int, str] = {}
    for turn in iterations:
        if turn.node is not None and turn.algotype is not None and turn.attempts:
            labels.setdefault(turn.node, turn.algotype)
    return labels


def neighbours(iterations: Iterable[Iteration]) -> list[tuple[int, int]]:
    """Return all pairs of a node and a goal of one of its edges, in order of appearance."""
    pairs: dict[tuple[int, int], None] = {}
    for turn in iterations:
        for attempt in turn.attempts:
            if turn.node is not None and attempt.edge is not None:
                pairs.update(dict.fromkeys((turn.node, child) for child in attempt.children))
    return list(pairs)


def aggregation(
    iterations: Sequence[Iteration], *, seed: int = 0, permutations: int = 999
) -> Aggregation:
    """Return the aggregation in one goal's tree."""
    return of_labels(expanders(iterations), neighbours(iterations), seed, permutations)


def of_labels(
    labels: Mapping[int, str], pairs: Sequence[tuple[int, int]], seed: int, permutations: int
) -> Aggregation:
    """Return the aggregation of labelled nodes; pairs with an unlabelled node do not count."""
    both = [(a, b) for a, b in pairs if a in labels and b in labels]
    kinds = sorted(set(labels.values()))
    if not both:
        return Aggregation(0, len(labels), None, undefined="no two neighbours were expanded")
    places = {node: place for place, node in enumerate(sorted(labels))}
    import numpy as np

    codes = np.array([kinds.index(labels[node]) for node in sorted(labels)], dtype=np.int16)
    left = np.array([places[a] for a, _ in both])
    right = np.array([places[b] for _, b in both])
    share = float((codes[left] == codes[right]).mean())
    if len(kinds) < 2:
        why = f"only one algotype expanded nodes: {kinds[0]}"
        return Aggregation(len(both), len(labels), share, undefined=why)
    generator = np.random.default_rng(seed)
    null = np.empty(permutations)
    for draw in range(permutations):
        dealt = generator.permutation(codes)
        null[draw] = (dealt[left] == dealt[right]).mean()
    mean, spread = float(null.mean()), float(null.std(ddof=1))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(null, (tail, 1 - tail))
    return Aggregation(
        len(both),
        len(labels),
        share,
        mean,
        float(low),
        float(high),
        (share - mean) / spread if spread > 1e-12 else None,
        upper_p(share, null),
    )
