"""The forecast, stage by stage: clean, take out promotions and the week, smooth, extrapolate."""

from __future__ import annotations

from collections.abc import Sequence

from demand import clean, level, promo, trend, week
from demand.days import CannotForecast, Day

SHORTEST_HISTORY = 28


def forecast(history: Sequence[Day], ahead: Sequence[Day]) -> list[float]:
    """Expected units for each day of `ahead`, which follows on the last day of `history`."""
    if len(history) < SHORTEST_HISTORY:
        raise CannotForecast(f"{len(history)} days of history, need {SHORTEST_HISTORY}")

    units = clean.repair(history)

    uplift = promo.uplift(history, units)
    plain = [sold / uplift if day.promo else sold for day, sold in zip(history, units, strict=True)]

    profile = week.profile(history, plain)
    steady = [sold / profile[day.weekday] for day, sold in zip(history, plain, strict=True)]

    base = level.smooth(steady)
    rise = trend.path(trend.slope(steady), len(ahead))

    expected = []
    for day, risen in zip(ahead, rise, strict=True):
        sold = (base + risen) * profile[day.weekday]
        if day.promo:
            sold *= uplift
        expected.append(max(sold, 0.0))
    return expected
