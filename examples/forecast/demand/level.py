"""Where demand stands now: simple exponential smoothing."""

from __future__ import annotations

from collections.abc import Sequence

from demand.days import mean

# The weight of the newest day. High follows quickly, low forgets slowly.
ALPHA = 0.3

# The smoothing starts from the mean of the first weeks; after some months it does not
# matter any more where it started.
START_DAYS = 14


def smooth(values: Sequence[float]) -> float:
    """The smoothed level at the end of `values`."""
    level = mean(values[:START_DAYS])
    for value in values[START_DAYS:]:
        level += ALPHA * (value - level)
    return level
