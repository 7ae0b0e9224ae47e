"""Differences within rounding: smaller than the resolution of numbers of that size.

The same value has other last bits when it is summed in another order. Comparisons of measurements
in `tree` and `search` count such a difference as 0. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

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
