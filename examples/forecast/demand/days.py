"""What the model is told about a day."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple


class Day(NamedTuple):
    """`units` is what was sold; on a day to forecast it is 0 and means nothing."""

    weekday: int
    promo: bool
    units: float = 0.0


class CannotForecast(Exception):
    """The history is too short to say anything."""


def mean(values: Iterable[float]) -> float:
    """Rounded once, so that every machine and every Python gives the same number."""
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)
