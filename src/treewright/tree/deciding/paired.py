"""The mean of paired differences, with an interval that is the same on every machine.

Bootstrap: Hesterberg's expanded percentile interval ("What Teachers Should Know
About the Bootstrap", 2015), with a nominal level that is adjusted so that its coverage is
right for small samples. Below `_FEW_PAIRS` the bootstrap cannot see the tails at all
and the interval is widened to Student's where that is wider; above `_MANY_PAIRS` the
two agree and the normal one is used. Resampling indices come from SplitMix64 and
sums are sequential, so no library version or CPU feature changes a bit of the result.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from treewright.kernel.stats import expanded_tail, student_quantile

CONFIDENCE = 0.95
RESAMPLES = 2000
_FEW_PAIRS = 8
_MANY_PAIRS = 2000
_SMALLEST, _LARGEST = 1e-100, 1e100
_FLIPS = 0x5EED
"""Tells the random numbers of the sign-flip test from those of the bootstrap."""
_ROUNDING = 1e-12
_NORMAL_QUANTILE = 1.959963984540054


def mean(values: Sequence[float]) -> float:
    """Return the mean, exactly rounded and so independent of the order."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        room = len(values).bit_length()
        return _unscale(math.fsum(math.ldexp(x, -room) for x in values) / len(values), room)


def interval(deltas: Sequence[float], seed: int) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean; None for fewer than two pairs, which show no noise."""
    if len(deltas) < 2:
        return None
    largest = max(abs(x) for x in deltas)
    if not largest or _SMALLEST < largest < _LARGEST:
        return _interval(deltas, seed)
    exponent = math.frexp(largest)[1]  # squares would leave the range; powers of two are exact
    low, high = _interval([math.ldexp(x, -exponent) for x in deltas], seed)
    return _unscale(low, exponent), _unscale(high, exponent)


def is_beyond_chance(deltas: Sequence[float], seed: int) -> bool:
    """Return whether the mean is further from zero than chance explains, at 2.5 % on each side.

    Sign-flip test: where a change has no effect, each difference is as likely as its negative. The
    test needs no other assumption, so it holds for skewed and for rarely changing numbers.
    """
    largest = max(abs(x) for x in deltas)
    if not largest:
        return False
    scale = -math.frexp(largest)[1]
    sizes = [math.ldexp(x, scale) for x in deltas]
    observed = abs(math.fsum(sizes)) * (1 - _ROUNDING)
    signs = 1 - 2 * (_indices(len(deltas), seed ^ _FLIPS, 2)).astype(np.float64)
    totals = np.zeros(RESAMPLES)
    for size, flips in zip(sizes, signs, strict=True):
        totals += size * flips
    reached = int(np.count_nonzero(totals >= observed))
    return (1 + reached) / (1 + RESAMPLES) <= (1 - CONFIDENCE) / 2


def _unscale(x: float, exponent: int) -> float:
    try:
        return math.ldexp(x, exponent)
    except OverflowError:
        return math.copysign(sys.float_info.max, x)


def _interval(deltas: Sequence[float], seed: int) -> tuple[float, float]:
    n = len(deltas)
    centre = mean(deltas)
    off = [x - centre for x in deltas]
    squares = math.fsum(x * x for x in off)  # `x**2` has another last bit on some machines
    spread = math.sqrt(squares / (n - 1)) / math.sqrt(n)
    if n > _MANY_PAIRS:
        return centre - _NORMAL_QUANTILE * spread, centre + _NORMAL_QUANTILE * spread
    low, high = _bootstrap(deltas, seed)
    if n < _FEW_PAIRS:
        reach = student_quantile(0.5 + CONFIDENCE / 2, n - 1) * spread
        low, high = min(low, centre - reach), max(high, centre + reach)
    return low, high


def _bootstrap(deltas: Sequence[float], seed: int) -> tuple[float, float]:
    n = len(deltas)
    totals, *rest = np.asarray(deltas, dtype=np.float64)[_indices(n, seed, n)]
    for picked in rest:  # one after the other on every machine; sum() may add in another order
        totals += picked
    means = np.sort(totals / n)
    skip = int(expanded_tail(n, CONFIDENCE) * RESAMPLES)
    return float(means[skip]), float(means[RESAMPLES - 1 - skip])


@lru_cache(maxsize=16)
def _indices(n: int, seed: int, bound: int) -> np.ndarray:
    """Return n x RESAMPLES indices below n: SplitMix64 of a counter, reduced by multiply-shift.
    The counter runs through one resample after the other."""
    with np.errstate(over="ignore"):
        x = np.arange(1, RESAMPLES * n + 1, dtype=np.uint64) + np.uint64(seed % 2**63)
        x *= np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        below = (((x >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32)).astype(np.int64)
        return np.ascontiguousarray(below.reshape(RESAMPLES, n).T)
