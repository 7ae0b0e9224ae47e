"""Intervals and exact tests for small samples.

Intervals are 95 % intervals unless stated otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from treewright.kernel.stats import expanded_tail, student_quantile

if TYPE_CHECKING:
    import numpy as np

CONFIDENCE = 0.95
_Z = 1.959963984540054
_RESAMPLES = 2000
_FEWEST_CLUSTERS = 3
_FEW_CLUSTERS = 8


class Estimate(msgspec.Struct, frozen=True):
    """A number and its interval; `count` is the number of observations."""

    value: float
    low: float | None
    high: float | None
    count: int


def rate(successes: int, count: int) -> Estimate | None:
    """Return a share with Wilson's interval; None for no observations."""
    if not count:
        return None
    share = successes / count
    spread = _Z * math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
    scale = 1 + _Z**2 / count
    centre = share + _Z**2 / (2 * count)
    low = 0.0 if successes == 0 else (centre - spread) / scale
    high = 1.0 if successes == count else (centre + spread) / scale
    return Estimate(share, low, high, count)


def clustered_mean(
    clusters: Sequence[Sequence[float]],
    seed: int,
    scale: Callable[[float], float] = float,
) -> Estimate | None:
    """Return the mean of all values, with an interval that allows for alike values in a cluster.

    A cluster is one goal under several seeds. The bootstrap draws whole clusters, with expanded
    tails. For few clusters the interval is widened to Student's, if that is wider; below three
    clusters there is none. `scale` is applied to the three numbers at the end.
    """
    filled = [cluster for cluster in clusters if len(cluster)]
    if not filled:
        return None
    values = [value for cluster in filled for value in cluster]
    centre = math.fsum(values) / len(values)
    if len(filled) < _FEWEST_CLUSTERS:
        return Estimate(scale(centre), None, None, len(values))
    low, high = _bootstrap(filled, seed)
    if len(filled) < _FEW_CLUSTERS:
        reach = student_quantile(0.5 + CONFIDENCE / 2, len(filled) - 1) * _spread(filled, centre)
        low, high = min(low, centre - reach), max(high, centre + reach)
    return Estimate(scale(centre), scale(low), scale(high), len(values))


def _bootstrap(clusters: Sequence[Sequence[float]], seed: int) -> tuple[float, float]:
    import numpy as np

    count = len(clusters)
    sums = np.array([math.fsum(cluster) for cluster in clusters])
    sizes = np.array([len(cluster) for cluster in clusters], dtype=float)
    drawn = np.random.default_rng(seed).integers(0, count, (_RESAMPLES, count))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    tail = expanded_tail(count, CONFIDENCE)
    low, high = np.quantile(means, (tail, 1 - tail))
    return float(low), float(high)


def _spread(clusters: Sequence[Sequence[float]], centre: float) -> float:
    """Return the standard error of the mean: of the clusters, or of the values if that is larger.

    Clusters with equal means can still have values that differ.
    """
    count = sum(map(len, clusters))
    between = math.fsum(math.fsum(v - centre for v in cluster) ** 2 for cluster in clusters)
    between *= len(clusters) / (len(clusters) - 1)
    within = math.fsum((v - centre) ** 2 for cluster in clusters for v in cluster)
    within *= count / (count - 1)
    return math.sqrt(max(between, within)) / count


def not_negative(number: float) -> float:
    """A scale for counts: an interval of counts does not go below 0."""
    return max(0.0, number)


def mcnemar(lost: int, won: int) -> float:
    """Return the two-sided exact p-value for unequal numbers of lost and won pairs."""
    count = lost + won
    if not count:
        return 1.0
    tail = sum(math.comb(count, k) for k in range(min(lost, won) + 1))
    return min(1.0, 2 * tail / 2**count)


def upper_p(observed: float, drawn: np.ndarray) -> float:
    """Return the p-value of a permutation test: the share of draws at least as large.

    The observed arrangement counts as one draw. The comparison has a tolerance for rounding.
    """
    slack = 1e-9 * max(1.0, abs(observed))
    return (1 + int((drawn >= observed - slack).sum())) / (1 + len(drawn))
