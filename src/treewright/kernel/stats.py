"""Statistics that several packages share: Student's t, and differences within rounding. Pure.

The same value has other last bits when it is summed in another order. Comparisons of measurements
in `tree` and `search` count such a difference as 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist

_ROUNDING = 1e-9
"""Two numbers that differ by at most this share of the larger one are the same measurement."""
_RESOLUTION = 1e-12
"""So are two numbers that differ by at most this share of the usual size."""


def same_measurement(a: float, b: float) -> bool:
    """Return whether the difference of two numbers is within rounding."""
    return abs(a - b) <= _ROUNDING * max(abs(a), abs(b))


def beyond_rounding(
    gains: Sequence[float], before: Sequence[float], after: Sequence[float], size: float
) -> list[float]:
    """Return gains with those within rounding set to 0.

    Args:
        gains: The differences from `before` to `after`.
        before: The numbers before.
        after: The numbers after.
        size: The average size of the numbers before.
    """
    usual = _RESOLUTION * (size or 1.0)
    return [
        0.0 if abs(gain) <= usual or same_measurement(a, b) else gain
        for gain, a, b in zip(gains, before, after, strict=True)
    ]


def sizes_of_changes(
    gains: Sequence[float], before: Sequence[float], after: Sequence[float]
) -> list[float]:
    """Return the size of the numbers behind each gain; 0 where there is no gain.

    Numbers that are equal before and after add nothing to a mean of gains, and no error.
    """
    return [
        max(abs(a), abs(b)) if gain else 0.0
        for gain, a, b in zip(gains, before, after, strict=True)
    ]


def beyond_resolution(x: float, size: float) -> float:
    """Return a mean of gains, or a bound of it; 0 if it is within the rounding of its sum.

    Gains and losses that cancel out leave the error of their sum. `size` is the average size of the
    numbers.
    """
    return 0.0 if abs(x) <= _RESOLUTION * size else x


@lru_cache(maxsize=256)
def expanded_tail(n: int, confidence: float) -> float:
    """Return the share of resampled means to leave out at either end (Hesterberg 2015)."""
    t = student_quantile(0.5 + confidence / 2, n - 1)
    return NormalDist().cdf(-math.sqrt(n / (n - 1)) * t)


@lru_cache(maxsize=256)
def student_quantile(p: float, df: int) -> float:
    """Return the p-quantile (p > 0.5) of Student's t, by bisection."""
    low, high = 0.0, 1.0
    while _student_cdf(high, df) < p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if _student_cdf(middle, df) < p:
            low = middle
        else:
            high = middle
    return float(f"{(low + high) / 2:.10g}")  # the last bits depend on the C library


def _student_cdf(t: float, df: int) -> float:
    """Return the distribution function for a whole df (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    theta = math.atan(t / math.sqrt(df))
    cos2 = math.cos(theta) ** 2
    if df == 1:
        return 0.5 + theta / math.pi
    start = 3 if df % 2 else 2
    term = total = 1.0
    for k in range(start, df - 1, 2):
        term *= cos2 * (k - 1) / k
        total += term
    if df % 2:
        area = 2 / math.pi * (theta + math.sin(theta) * math.cos(theta) * total)
    else:
        area = math.sin(theta) * total
    return 0.5 + area / 2
