"""The executor protocol: take requests, hand back completions, in any order.

An executor never decides anything and never writes the run's state; the
coordinator does both with what `next_done` returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Request = TypeVar("Request")
Outcome = TypeVar("Outcome")


@dataclass(frozen=True, slots=True)
class Done(Generic[Request, Outcome]):
    """A finished request: its outcome, or the exception that the worker itself raised."""

    request: Request
    outcome: Outcome | None
    error: BaseException | None = None


class Executor(Protocol[Request, Outcome]):
    """`capacity` requests may be under way at once."""

    capacity: int

    def submit(self, request: Request) -> None: ...

    def next_done(self) -> Done[Request, Outcome]:
        """Waits for a completion; there must be a request under way."""
        ...

    def close(self, *, cancel: bool = False) -> None:
        """Waits for what is under way (after cancelling it, if asked) and ends."""
        ...
