"""The executor protocol: take requests, hand back completions, in any order.

An executor never decides anything and never writes the run's state; the
coordinator does both with what `next_done` returns.
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
    """The worker died or cannot be reached; the request may well succeed on another."""


class WorkerUnfit(Exception):
    """The worker cannot do any of this work; another try there would end the same way."""


class NotBegun(Exception):
    """The request was cancelled before a worker began it."""


class Stop(threading.Event):
    """Set when what a request asks for is no longer wanted."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []

    def set(self) -> None:
        super().set()
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def on_set(self, callback: Callable[[], object]) -> None:
        """Calls it once, from whichever thread sets this; at once if it is set already."""
        with self._lock:
            if not self.is_set():
                self._callbacks.append(callback)
                return
        callback()


_current: ContextVar[Stop | None] = ContextVar("current_stop", default=None)


def current_stop() -> Stop:
    """For the work: what says that its request was cancelled. Outside of an executor, never."""
    return _current.get() or Stop()


@contextlib.contextmanager
def working_under(stop: Stop) -> Iterator[None]:
    """For executors: around the work on one request."""
    token = _current.set(stop)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True, slots=True)
class Worker:
    """Who did the work, for the record."""

    name: str
    pid: int


@dataclass(frozen=True, slots=True)
class Done(Generic[Request, Outcome]):
    """A finished request: its outcome, or the exception that the worker itself raised."""

    request: Request
    outcome: Outcome | None
    error: BaseException | None = None
    worker: Worker | None = None


class Executor(Protocol[Request, Outcome]):
    """`capacity` requests may be under way at once."""

    capacity: int

    def submit(self, request: Request) -> None: ...

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        """Waits for a completion; None when `timeout` seconds have passed without one."""
        ...

    def cancel(self, request: Request) -> None:
        """Asks that a request end soon, and returns at once; its completion comes all the same.

        What runs has to look at `current_stop`; what was not begun is `NotBegun` or lost.
        """
        ...

    def close(self) -> None:
        """Waits for what is under way and ends. Cancelling is the caller's business."""
        ...
