"""The shape of the week."""

from __future__ import annotations

from collections.abc import Sequence

from demand.days import Day, mean

# Weeks of history that the shape is taken from.
WEEKS = 2

# A weekday never counts for less than this share of an average day.
SMALLEST_SHARE = 0.05


def profile(history: Sequence[Day], units: Sequence[float]) -> list[float]:
    """A factor for each weekday, Monday first."""
    by_weekday: list[list[float]] = [[] for _ in range(7)]
    recent = list(zip(history, units, strict=True))[-7 * WEEKS :]
    for day, sold in recent:
        by_weekday[day.weekday].append(sold)

    typical = [mean(sold) for sold in by_weekday]

    # The factors average to one, so that dividing by them leaves the level alone.
    whole = mean(typical)
    if whole <= 0.0:
        return [1.0] * 7
    return [max(value / whole, SMALLEST_SHARE) for value in typical]
