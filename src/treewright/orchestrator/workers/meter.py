"""What an attempt used, whoever ended it and how: Lean's CPU time, answers of a model; and how
long it only waited.

Waiting for a Lean session, a thread or the replay check's turn is not the strategy's time: it is
neither in its limit nor learned from.
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
    """Adds up what was used while it was current.

    A search finds here what it was `given` of earlier searches' lessons, and leaves its own.
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
        """Also of a wait that is not over."""
        since = self._waiting_since
        return self._waited + (0.0 if since is None else time.monotonic() - since)

    def spend(self, usage: Usage | None) -> None:
        """What an answer of a model used; none if there was no answer."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        self._waiting_since = time.monotonic()
        try:
            yield
        finally:
            self.add_wait(time.monotonic() - self._waiting_since)
            self._waiting_since = None

    def add_wait(self, seconds: float) -> None:
        self._waited += seconds


current_meter: ContextVar[Meter | None] = ContextVar("current_meter", default=None)


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """Within the block the current task does nothing but wait for its turn."""
    meter = current_meter.get()
    with contextlib.nullcontext() if meter is None else meter.waiting():
        yield


def spend(usage: Usage) -> None:
    """Counts what an answer of a model used on the meter of the current task."""
    if (meter := current_meter.get()) is not None:
        meter.spend(usage)


def cpu_seconds(pid: int | None) -> float:
    """User and system time of a process so far; 0 where it cannot be known."""
    if pid is None:
        return 0.0
    try:
        used = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    return used.user + used.system


@contextlib.contextmanager
def metered(pid: int | None) -> Iterator[None]:
    """Counts what a process uses within the block on the meter of the current task."""
    meter = current_meter.get()
    before = cpu_seconds(pid)
    try:
        yield
    finally:
        if meter is not None:
            meter.cpu_seconds += max(0.0, cpu_seconds(pid) - before)
