"""Round tick values for a linear axis."""

from __future__ import annotations

import math


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten that cover [low, high]."""
    if not high > low:
        high = low + 1.0
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough), 10 * power)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [index * step for index in range(first, last + 1)]
