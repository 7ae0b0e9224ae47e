"""The meter of an attempt: Lean's CPU time, the usage of models, lessons, and time spent waiting.

Waiting for a Lean session, a thread or the replay check is not the strategy's time: it counts
neither in the strategy's limit nor in its statistics.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar

import psutil

from treewright.llm.usage import Usage
from treewright.proving.learning import Lesson


class Meter:
    """Sums of one attempt, kept however the attempt ends.

    `given` are the lessons that the attempt's searches may use; a search adds its own lessons to
    `lessons`.
    """

    def __init__(self, given: Sequence[Lesson] = ()) -> None:
        self.cpu_seconds = 0.0
        self.usage: Usage | None = None
        self.given = tuple(given)
        self.lessons: list[Lesson] = []
        self._waited = 0.0
        self._waiting_since: float | None = None

    @property
    def waited_seconds(self) -> float:
        """The seconds spent waiting, including a wait that is not over."""
        since = self._waiting_since
        return self._waited + (0.0 if since is None else time.monotonic() - since)

    def add_usage(self, usage: Usage | None) -> None:
        """Add the usage of a model's answer, if there was an answer."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time in the block as waiting."""
        self._waiting_since = time.monotonic()
        try:
            yield
        finally:
            self.add_wait(time.monotonic() - self._waiting_since)
            self._waiting_since = None

    def add_wait(self, seconds: float) -> None:
        """Add time that was spent waiting elsewhere."""
        self._waited += seconds


current_meter: ContextVar[Meter | None] = ContextVar("current_meter", default=None)
"""The meter of the attempt that the current task belongs to."""


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Count the time in the block as waiting, on the meter of the current task."""
    meter = current_meter.get()
    with contextlib.nullcontext() if meter is None else meter.waiting():
        yield


def add_usage(usage: Usage) -> None:
    """Add the usage of a model's answer to the meter of the current task."""
    if (meter := current_meter.get()) is not None:
        meter.add_usage(usage)


def cpu_seconds(pid: int | None) -> float:
    """Return the user and system time of a process so far; 0 if it cannot be read."""
    if pid is None:
        return 0.0
    try:
        used = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return used.user + used.system


@contextlib.contextmanager
def metered(pid: int | None) -> Iterator[None]:
    """Add the CPU time that a process uses in the block to the meter of the current task."""
    meter = current_meter.get()
    before = cpu_seconds(pid)
    try:
        yield
    finally:
        if meter is not None:
            meter.cpu_seconds += max(0.0, cpu_seconds(pid) - before)
