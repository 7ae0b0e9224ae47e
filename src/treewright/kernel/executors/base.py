"""The executor protocol: take requests, hand back completions, in any order.

An executor never decides anything and never writes the run's state; the
coordinator does both with what `next_done` returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Request = TypeVar("Request")
Outcome = TypeVar("Outcome")


class WorkerLost(Exception):
    """The worker died or cannot be reached; the request may well succeed on another."""


class WorkerUnfit(Exception):
    """The worker cannot do any of this work; another try there would end the same way."""


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

    def close(self) -> None:
        """Waits for what is under way and ends. Cancelling is the caller's business."""
        ...
