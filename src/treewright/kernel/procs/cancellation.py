"""Cancellations: one that comes by itself when the time is up, one that knows a lease."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator


class Cancellation(threading.Event):
    """An event that says "stop", and can say "you may not go on" as well."""

    def check(self) -> None:
        """Raises if what comes next must not be done any more."""


class Fence(Cancellation):
    """Set when `cancel` is; `check` raises LeaseLost once somebody else owns the run.

    Whoever waited long (for a sweep, an agent) asks before it writes to a path again:
    the files there may be its successor's by now.
    """

    def __init__(self, cancel: threading.Event, guard: Callable[[], None]) -> None:
        super().__init__()
        self._outer = cancel
        self._guard = guard

    def is_set(self) -> bool:
        return self._outer.is_set()

    def set(self) -> None:
        self._outer.set()

    def wait(self, timeout: float | None = None) -> bool:
        return self._outer.wait(timeout)

    def check(self) -> None:
        self._guard()


def check(cancel: threading.Event | None) -> None:
    """Asks a cancellation that can answer."""
    if isinstance(cancel, Cancellation):
        cancel.check()


class Deadline(Cancellation):
    """Set when `cancel` is, or once `seconds` have passed."""

    def __init__(self, cancel: threading.Event, seconds: float | None = None) -> None:
        super().__init__()
        self._outer = cancel
        self._at = None if seconds is None else time.monotonic() + seconds

    @contextlib.contextmanager
    def paused(self) -> Iterator[threading.Event]:
        """Time in which nothing can be done does not count; what cancels still does."""
        began = time.monotonic()
        try:
            yield self._outer
        finally:
            if self._at is not None:
                self._at += time.monotonic() - began

    @property
    def passed(self) -> bool:
        """Whether it is the time that is up, and nobody cancelled."""
        return self._at is not None and time.monotonic() >= self._at and not self._outer.is_set()

    def is_set(self) -> bool:
        return self._outer.is_set() or self.passed

    def check(self) -> None:
        check(self._outer)

    def wait(self, timeout: float | None = None) -> bool:
        """As of an event; looks every twentieth of a second."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = 0.05 if until is None else min(0.05, until - time.monotonic())
            if left <= 0:
                return False
            self._outer.wait(left)
        return True
