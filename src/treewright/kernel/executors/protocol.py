"""The executor protocol: take requests, return completions in any order.

An executor decides nothing and never writes the state of a run. The coordinator does both with the
completions that `next_done` returns.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Request = TypeVar("Request")
Outcome = TypeVar("Outcome")


class WorkerLost(Exception):
    """The worker died or cannot be reached; the request may well succeed on another one."""


class WorkerUnfit(Exception):
    """The worker cannot do any of this work; another try on it would fail the same way."""


class NotBegun(Exception):
    """The request was cancelled before a worker began it."""


class Stop(threading.Event):
    """An event that is set when the result of a request is no longer wanted."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []

    def set(self) -> None:
        """Set the event and call the callbacks."""
        super().set()
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], object]) -> None:
        """Call a function once when the event is set, in the thread that sets it.

        If the event is set already, the function is called now.
        """
        with self._lock:
            if not self.is_set():
                self._callbacks.append(callback)
                return
        callback()


_current: ContextVar[Stop | None] = ContextVar("current_stop", default=None)


def current_stop() -> Stop:
    """Return the stop of the request that this thread works on.

    The work on a request checks it, so that it can end early. Outside of an executor the stop is
    never set.
    """
    return _current.get() or Stop()


@contextlib.contextmanager
def stoppable_by(stop: Stop) -> Iterator[None]:
    """Make `stop` the `current_stop` inside the block.

    An executor puts this around the work on one request.
    """
    token = _current.set(stop)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True, slots=True)
class Worker:
    """The worker that did the work, for the record."""

    name: str
    pid: int


@dataclass(frozen=True, slots=True)
class Done(Generic[Request, Outcome]):
    """The completion of a request.

    Attributes:
        request: The request, the same object that was submitted.
        outcome: The result of the work; None if there is an error.
        error: The exception that the work or its worker raised.
        worker: The worker, where it is known.
    """

    request: Request
    outcome: Outcome | None
    error: BaseException | None = None
    worker: Worker | None = None


class Executor(Protocol[Request, Outcome]):
    """Runs requests, at most `capacity` of them at once."""

    capacity: int

    def submit(self, request: Request) -> None:
        """Begin a request, as soon as there is a free worker."""
        ...

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        """Wait for the next completion.

        Args:
            timeout: The longest wait in seconds; None for no limit.

        Returns:
            A completion, or None if there was none in time.
        """
        ...

    def cancel(self, request: Request) -> None:
        """Ask that a request end soon, and return at once.

        The request still gets its completion. Work that has begun has to check `current_stop`; a
        request that has not begun ends with `NotBegun` or `WorkerLost`.
        """
        ...

    def close(self) -> None:
        """Wait for the requests under way, and end. The caller cancels them first if it wants."""
        ...
