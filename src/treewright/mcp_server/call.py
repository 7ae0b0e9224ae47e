"""One call of a tool: whom it tells of its progress, and how it is stopped.

Tools are plain functions that run in a thread. Whoever waits for Lean there says how to interrupt
it; that is done when the client cancels the call or its time is over, again and again until the
thread has ended, and after a while with force.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from treewright.kernel.errors import TreewrightError

_REPORT_SECONDS = 0.25
_POLL_SECONDS = 0.05
Report = Callable[[float, float | None, str], None]
Act = Callable[[], None]


class Stopped(TreewrightError):
    """The call was cancelled, or its time is over."""


class Call:
    """`seconds` is how long it may take in all."""

    def __init__(self, seconds: float, report: Report = lambda done, total, text: None) -> None:
        self.stop = threading.Event()
        self.deadline = time.monotonic() + seconds
        self._report = report
        self._last = 0.0
        self._lock = threading.Lock()
        self._interrupts: list[tuple[Act, Act]] = []

    def progress(self, done: float, total: float | None, text: str) -> None:
        """Tells the client, not more often than it can use."""
        now = time.monotonic()
        if now - self._last >= _REPORT_SECONDS:
            self._last = now
            self._report(done, total, text)

    def go_on(self) -> None:
        """Raises if the call is to end."""
        if self.stop.is_set():
            raise Stopped("the call was stopped")

    @property
    def left(self) -> float:
        """Seconds until its time is over."""
        return max(0.0, self.deadline - time.monotonic())

    @contextlib.contextmanager
    def interrupting(self, gently: Act, hard: Act) -> Iterator[None]:
        """While it lasts, a stop calls `gently`, and `hard` when that has not helped."""
        entry = (gently, hard)
        with self._lock:
            self._interrupts.append(entry)
        try:
            self.go_on()
            yield
        finally:
            with self._lock:
                self._interrupts.remove(entry)

    def interrupt(self, *, hard: bool) -> None:
        """From another thread; the call ends soon after."""
        self.stop.set()
        with self._lock:
            acts = [entry[hard] for entry in self._interrupts]
        for act in acts:
            with contextlib.suppress(Exception):
                act()

    @contextlib.contextmanager
    def holding(self, lock: threading.Lock, what: str = "that Lean") -> Iterator[None]:
        """Has the lock while it lasts; waiting for it ends with the call."""
        while not lock.acquire(timeout=_POLL_SECONDS):
            self.go_on()
            if not self.left:
                raise Stopped(f"another call has {what}; try again later")
        try:
            yield
        finally:
            lock.release()
