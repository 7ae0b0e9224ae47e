"""Round tick values for a linear axis."""

from __future__ import annotations

import math

_NARROWEST = 1e-9


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten that cover [low, high].

    A range too narrow for floating point to divide is widened.
    """
    if high - low <= _NARROWEST * max(1.0, abs(low), abs(high)):
        high = low + max(1.0, abs(low))
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough), 10 * power)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [index * step for index in range(first, last + 1)]
