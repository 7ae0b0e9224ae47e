"""Intervals and exact tests for small samples. 95 % unless said otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

CONFIDENCE = 0.95
_Z = 1.959963984540054
_RESAMPLES = 2000


class Estimate(msgspec.Struct, frozen=True):
    """A number and its interval; `count` is how many observations it rests on."""

    value: float
    low: float | None
    high: float | None
    count: int


def rate(successes: int, count: int) -> Estimate | None:
    """A share with Wilson's interval; None of nothing."""
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
    """The mean over all values, with a percentile bootstrap that draws whole clusters.

    Values of one cluster (one goal under several seeds) are alike: drawing them one by one would
    make the interval too narrow. With fewer than two clusters there is no interval. `scale` is
    applied to the three numbers at the end.
    """
    filled = [cluster for cluster in clusters if len(cluster)]
    if not filled:
        return None
    sums = np.array([math.fsum(cluster) for cluster in filled])
    sizes = np.array([len(cluster) for cluster in filled], dtype=float)
    count = int(sizes.sum())
    centre = math.fsum(sums) / count
    if len(filled) < 2:
        return Estimate(scale(centre), None, None, count)
    drawn = np.random.default_rng(seed).integers(0, len(filled), (_RESAMPLES, len(filled)))
    means = sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return Estimate(scale(centre), scale(float(low)), scale(float(high)), count)


def mcnemar(lost: int, won: int) -> float:
    """Two-sided exact p-value that pairs which differ do so in either direction alike."""
    count = lost + won
    if not count:
        return 1.0
    tail = sum(math.comb(count, k) for k in range(min(lost, won) + 1))
    return min(1.0, 2 * tail / 2**count)


def upper_p(observed: float, drawn: np.ndarray) -> float:
    """The p-value of a permutation test: how often chance gives at least as much.

    The observed arrangement is one of those possible, so it is counted too; rounding must not
    make equal sums differ.
    """
    slack = 1e-9 * max(1.0, abs(observed))
    return (1 + int((drawn >= observed - slack).sum())) / (1 + len(drawn))
