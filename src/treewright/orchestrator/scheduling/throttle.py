"""Leaving the machine to whoever else is using it: wait while its load is above the target.

    ema   ← α · load + (1 - α) · ema        load: 1-minute load average / number of cores
    sleep   min(1, 4 · (ema - target))      while ema > target

The sleeps repeat until the load is down, but no longer than `patience` seconds before one
start: on a machine that is always busy the work goes on, slowly.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

import psutil

DEFAULT_ALPHA = 0.1
DEFAULT_PATIENCE_SECONDS = 30.0
_LONGEST_SLEEP_SECONDS = 1.0
_GAIN = 4.0


def machine_load() -> float:
    """How many processes want to run, per core, over the last minute."""
    return psutil.getloadavg()[0] / (os.cpu_count() or 1)


class Throttle:
    """The moving average of the load, and the waiting. `read_load` and `sleep` can be given."""

    def __init__(
        self,
        target: float,
        *,
        alpha: float = DEFAULT_ALPHA,
        patience: float = DEFAULT_PATIENCE_SECONDS,
        read_load: Callable[[], float] = machine_load,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._target = target
        self._alpha = alpha
        self._patience = patience
        self._read_load = read_load
        self._sleep = sleep
        self._ema: float | None = None
        self.slept_seconds = 0.0
        self.on_first_wait: Callable[[str], None] = lambda text: None

    @property
    def ema(self) -> float:
        return self._ema or 0.0

    def observe(self) -> float:
        """Reads the load once; the seconds to sleep for it."""
        load = self._read_load()
        # The first reading is all there is to know: starting from 0 would ignore a busy machine.
        old = load if self._ema is None else self._ema
        self._ema = self._alpha * load + (1 - self._alpha) * old
        return max(0.0, min(_LONGEST_SLEEP_SECONDS, _GAIN * (self._ema - self._target)))

    async def pause(self) -> float:
        """Waits before something is started; returns how long."""
        waited = 0.0
        while waited < self._patience and (seconds := self.observe()) > 0:
            if not waited and not self.slept_seconds:
                self.on_first_wait(
                    f"the load is {self.ema:.1f} a core, above --cpu-target {self._target:g}: "
                    "starts are held back"
                )
            # Never shorter than a look at the load is worth.
            seconds = max(0.01, min(seconds, self._patience - waited))
            await self._sleep(seconds)
            waited += seconds
        self.slept_seconds += waited
        return waited
