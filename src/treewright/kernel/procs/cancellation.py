"""Cancellations: events that stop work, by the user, by a deadline, or by a lost lease."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator


class Cancellation(threading.Event):
    """An event that cancels work, with a check that can forbid any further step."""

    def check(self) -> None:
        """Raise if no further step may be done."""


class Fence(Cancellation):
    """An event that is set when `cancel` is; `check` raises LeaseLost after a takeover.

    After a long wait, such as for a sweep, the caller checks it before it writes to a path again:
    the files there may belong to the next owner.
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
    """Call the check of a cancellation; other events have none."""
    if isinstance(cancel, Cancellation):
        cancel.check()


class Deadline(Cancellation):
    """An event that is set when `cancel` is, or after `seconds`."""

    def __init__(self, cancel: threading.Event, seconds: float | None = None) -> None:
        super().__init__()
        self._outer = cancel
        self._at = None if seconds is None else time.monotonic() + seconds

    @contextlib.contextmanager
    def paused(self) -> Iterator[threading.Event]:
        """Stop the clock inside the block. The block gets the event that still cancels."""
        began = time.monotonic()
        try:
            yield self._outer
        finally:
            if self._at is not None:
                self._at += time.monotonic() - began

    @property
    def passed(self) -> bool:
        """Whether the time is up, and the work was not cancelled before."""
        return self._at is not None and time.monotonic() >= self._at and not self._outer.is_set()

    def is_set(self) -> bool:
        return self._outer.is_set() or self.passed

    def check(self) -> None:
        check(self._outer)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the event is set; return whether it is."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = 0.05 if until is None else min(0.05, until - time.monotonic())
            if left <= 0:
                return False
            self._outer.wait(left)
        return True
