"""Differences that say nothing: two numbers apart by less than what numbers of that size can mean.

The same value comes out of sums in another order with other last bits. Whoever compares
measurements (`tree`, `search`) calls such a difference none. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

_ROUNDING = 1e-9
"""Two numbers that agree to this share of themselves are the same measurement."""
_RESOLUTION = 1e-12
"""So are two that differ by less than this share of what such numbers usually are."""


def same_measurement(a: float, b: float) -> bool:
    """Whether rounding explains the difference."""
    return abs(a - b) <= _ROUNDING * max(abs(a), abs(b))


def beyond_rounding(
    gains: Sequence[float], before: Sequence[float], after: Sequence[float], size: float
) -> list[float]:
    """The gains from `before` to `after`, without those that are smaller than what numbers of
    that size can mean. `size`: how large those before are on average."""
    usual = _RESOLUTION * (size or 1.0)
    return [
        0.0 if abs(gain) <= usual or same_measurement(a, b) else gain
        for gain, a, b in zip(gains, before, after, strict=True)
    ]


def sizes_of_changes(
    gains: Sequence[float], before: Sequence[float], after: Sequence[float]
) -> list[float]:
    """How large the numbers are that a mean of gains is made of: those that are the same on both
    sides add nothing to it, and no error."""
    return [
        max(abs(a), abs(b)) if gain else 0.0
        for gain, a, b in zip(gains, before, after, strict=True)
    ]


def beyond_resolution(x: float, size: float) -> float:
    """A mean of gains, or a bound of it, of numbers that are so large on average: gains and losses
    that cancel out leave the error of their sum, which is no gain."""
    return 0.0 if abs(x) <= _RESOLUTION * size else x
