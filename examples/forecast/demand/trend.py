"""Where demand is going: the recent rise per day, carried on."""

from __future__ import annotations

from collections.abc import Sequence

from demand.days import mean

# The rise is that between the last two windows of this many days.
WINDOW = 14


def path(rise: float, days: int) -> list[float]:
    """What to add to the level on each of the coming days, the first being tomorrow."""
    return [rise * ahead for ahead in range(1, days + 1)]


def slope(values: Sequence[float]) -> float:
    """Units per day by which the level has been rising; 0 if there is too little history.

    Two windows are compared instead of two days, since a single day is mostly noise.
    """
    if len(values) < 2 * WINDOW:
        return 0.0
    newer = mean(values[-day] for day in range(1, WINDOW + 1))
    older = mean(values[-day] for day in range(WINDOW + 1, 2 * WINDOW + 1))
    return (newer - older) / WINDOW
