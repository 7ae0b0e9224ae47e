"""One call of a tool: its progress, its deadline, its interruption, and faults of Lean.

Tools are plain functions that run in a thread. Code that waits for Lean registers how to interrupt
it. When the client cancels the call or the time is over, the server interrupts the call repeatedly
until its thread has ended, at first gently, then with force.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from treewright.kernel.errors import TreewrightError
from treewright.lean.session.answers import Cancelled, CheckResult, SessionLost, Timeout

_REPORT_SECONDS = 0.25
_POLL_SECONDS = 0.05
Report = Callable[[float, float | None, str], None]
Act = Callable[[], None]


class Stopped(TreewrightError):
    """The call was cancelled, or its time is over."""


class Call:
    """One call, which may take `seconds` in all."""

    def __init__(self, seconds: float, report: Report = lambda done, total, text: None) -> None:
        self.stop = threading.Event()
        self.deadline = time.monotonic() + seconds
        self._report = report
        self._last = 0.0
        self._lock = threading.Lock()
        self._interrupts: list[tuple[Act, Act]] = []

    def progress(self, done: float, total: float | None, text: str) -> None:
        """Report progress to the client, at most four times a second."""
        now = time.monotonic()
        if now - self._last >= _REPORT_SECONDS:
            self._last = now
            self._report(done, total, text)

    def raise_if_stopped(self) -> None:
        """Raise `Stopped` if the call must end."""
        if self.stop.is_set():
            raise Stopped("the call was stopped")

    @property
    def left(self) -> float:
        """Return the seconds until the deadline."""
        return max(0.0, self.deadline - time.monotonic())

    @contextlib.contextmanager
    def interruptible(self, gently: Act, hard: Act) -> Iterator[None]:
        """Inside the `with` block, a stop calls `gently`, and later `hard` if the call goes on."""
        entry = (gently, hard)
        with self._lock:
            self._interrupts.append(entry)
        try:
            self.raise_if_stopped()
            yield
        finally:
            with self._lock:
                self._interrupts.remove(entry)

    def interrupt(self, *, hard: bool) -> None:
        """Stop the call from another thread."""
        self.stop.set()
        with self._lock:
            acts = [entry[hard] for entry in self._interrupts]
        for act in acts:
            with contextlib.suppress(Exception):
                act()

    @contextlib.contextmanager
    def hold(self, lock: threading.Lock, resource: str = "that Lean") -> Iterator[None]:
        """Hold the lock inside the `with` block. Waiting for the lock ends with the call."""
        while not lock.acquire(timeout=_POLL_SECONDS):
            self.raise_if_stopped()
            if not self.left:
                raise Stopped(f"another call is using {resource}; try again later")
        try:
            yield
        finally:
            lock.release()


class Fault(TreewrightError):
    """A time-out or a lost Lean. The question has no answer."""


def fault(result: Timeout | SessionLost | Cancelled) -> Fault:
    """Return the error for an answer that Lean could not give."""
    match result:
        case Timeout():
            return Fault(
                f"timed out: {result}, so nothing is known; give more seconds, or less to do"
            )
        case Cancelled():
            return Fault("cancelled: nothing is known")
        case SessionLost():
            return Fault(f"lost: {result}, so nothing is known; the next call starts a new one")


def answered(result: CheckResult | Timeout | SessionLost) -> CheckResult:
    """Return the result if Lean read the whole text.

    Raises:
        Fault: Lean timed out, was lost, or stopped before the end.
    """
    if not isinstance(result, CheckResult):
        raise fault(result)
    if result.stopped:
        raise Fault(f"Lean stopped before the end of the text: {result.stopped}")
    return result
