"""A cancellation that also comes by itself, when the time is up."""

from __future__ import annotations

import threading
import time


class Deadline(threading.Event):
    """Set when `cancel` is, or once `seconds` have passed."""

    def __init__(self, cancel: threading.Event, seconds: float | None = None) -> None:
        super().__init__()
        self._outer = cancel
        self._at = None if seconds is None else time.monotonic() + seconds

    @property
    def passed(self) -> bool:
        """Whether it is the time that is up, and nobody cancelled."""
        return self._at is not None and time.monotonic() >= self._at and not self._outer.is_set()

    def is_set(self) -> bool:
        return self._outer.is_set() or self.passed

    def wait(self, timeout: float | None = None) -> bool:
        """As of an event; looks every twentieth of a second."""
        until = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            left = 0.05 if until is None else min(0.05, until - time.monotonic())
            if left <= 0:
                return False
            self._outer.wait(left)
        return True
