"""Days whose sales do not say what the demand was."""

from __future__ import annotations

from collections.abc import Sequence

from demand.days import Day


def repair(history: Sequence[Day]) -> list[float]:
    """Units sold, with returns (negative sales) taken as no sale."""
    return [max(day.units, 0.0) for day in history]
