"""Quantiles of Student's t and of bootstrap tails, with the same bits on every machine."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist


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
