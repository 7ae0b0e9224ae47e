"""One call of a tool: its progress, its deadline, and how it is interrupted."""

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

    def raise_if_stopped(self) -> None:
        """Raises if the call is to end."""
        if self.stop.is_set():
            raise Stopped("the call was stopped")

    @property
    def left(self) -> float:
        """Seconds until its time is over."""
        return max(0.0, self.deadline - time.monotonic())

    @contextlib.contextmanager
    def interruptible(self, gently: Act, hard: Act) -> Iterator[None]:
        """While it lasts, a stop calls `gently`, and `hard` when that has not helped."""
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
        """From another thread; the call ends soon after."""
        self.stop.set()
        with self._lock:
            acts = [entry[hard] for entry in self._interrupts]
        for act in acts:
            with contextlib.suppress(Exception):
                act()

    @contextlib.contextmanager
    def hold(self, lock: threading.Lock, what: str = "that Lean") -> Iterator[None]:
        """Has the lock while it lasts; waiting for it ends with the call."""
        while not lock.acquire(timeout=_POLL_SECONDS):
            self.raise_if_stopped()
            if not self.left:
                raise Stopped(f"another call has {what}; try again later")
        try:
            yield
        finally:
            lock.release()


class Fault(TreewrightError):
    """A time-out or a lost Lean: nothing is known about what was asked."""


def fault(result: Timeout | SessionLost | Cancelled) -> Fault:
    match result:
        case Timeout():
            return Fault(
                f"timed out: {result}, so nothing is known; give more seconds, or less to do"
            )
        case Cancelled():
            return Fault("cancelled: nothing is known")
        case SessionLost():
            return Fault(
                f"lost: {result}, so nothing is known; another one is started for the next call"
            )


def answered(result: CheckResult | Timeout | SessionLost) -> CheckResult:
    """The result, if Lean came to the end of the text."""
    if not isinstance(result, CheckResult):
        raise fault(result)
    if result.stopped:
        raise Fault(f"Lean stopped before the end of the text: {result.stopped}")
    return result
