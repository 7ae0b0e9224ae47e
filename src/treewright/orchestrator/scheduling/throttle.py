"""The CPU throttle: delay starts while the load of the machine is above a target.

    ema     ← α · load + (1 - α) · ema      load: 1-minute load average / number of cores
    pause     min(1, 4 · (ema - target))    seconds before a start, if ema > target

Each start is delayed once, by at most a second. On a machine that is always busy the work
continues, more slowly.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

import psutil

from treewright.orchestrator.config import DEFAULT_ALPHA

MAX_PAUSE_SECONDS = 1.0
_GAIN = 4.0
_MIN_PAUSE_SECONDS = 0.01


def machine_load() -> float:
    """Return the 1-minute load average per core."""
    return psutil.getloadavg()[0] / (os.cpu_count() or 1)


class Throttle:
    """The moving average of the load, and the pause before a start.

    Args:
        target: The load per core above which starts are delayed.
        alpha: The weight of a new reading in the moving average.
        read_load: Returns the load per core; tests give their own.
        sleep: Waits for a number of seconds; tests give their own.
    """

    def __init__(
        self,
        target: float,
        *,
        alpha: float = DEFAULT_ALPHA,
        read_load: Callable[[], float] = machine_load,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._target = target
        self._alpha = alpha
        self._read_load = read_load
        self._sleep = sleep
        self._ema: float | None = None
        self.slept_seconds = 0.0
        self.on_first_wait: Callable[[str], None] = lambda text: None

    async def __call__(self) -> float:
        """Wait before a start if the machine is busy; return the seconds waited."""
        return await self.pause()

    @property
    def ema(self) -> float:
        """The moving average of the load per core; 0 before the first reading."""
        return self._ema or 0.0

    def observe(self) -> float:
        """Read the load once and return the seconds to pause for it."""
        load = self._read_load()
        # An average that starts from 0 would ignore that the machine is busy already.
        old = load if self._ema is None else self._ema
        self._ema = self._alpha * load + (1 - self._alpha) * old
        return max(0.0, min(MAX_PAUSE_SECONDS, _GAIN * (self._ema - self._target)))

    async def pause(self) -> float:
        """Wait before a start if the machine is busy; return the seconds waited."""
        seconds = self.observe()
        if seconds <= 0:
            return 0.0
        if not self.slept_seconds:
            self.on_first_wait(
                f"the load of this machine is {self.ema:.1f} per core, above --cpu-target "
                f"{self._target:g}: each start waits up to {MAX_PAUSE_SECONDS:g} s"
            )
        seconds = max(_MIN_PAUSE_SECONDS, seconds)
        self.slept_seconds += seconds
        await self._sleep(seconds)
        return seconds
