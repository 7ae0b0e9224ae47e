"""Everybody who asks one endpoint takes turns: so many at once, so many a minute.

`Bucket` is the arithmetic: no clock, no threads. `Limiter` lends it a clock and a lock
for the threads of this process, first come first served. Whoever shares an address and
a key variable shares a limiter, whatever role or idea source they are; a `Retry-After`
that one of them was told holds for all.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from treewright.tree.config import EndpointConfig

MINUTE = 60.0
_TICK_SECONDS = 0.1


class HoldTooLong(Exception):
    """The endpoint asked for more patience than the caller has."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"asked to be left alone for another {seconds:.0f} s")


class Cancelled(Exception):
    """The caller was cancelled while it waited for its turn."""


class Bucket:
    """`requests_per_minute` tokens, each of which comes back a minute after it was taken,
    so that no window of a minute ever sees more; and `max_concurrent` places."""

    def __init__(
        self, max_concurrent: int | None = None, requests_per_minute: int | None = None
    ) -> None:
        self._places = max_concurrent
        self._tokens = requests_per_minute
        self._under_way = 0
        self._taken: deque[float] = deque()
        self._held_until = float("-inf")

    def tighten(self, max_concurrent: int | None, requests_per_minute: int | None) -> None:
        """Of two users' limits the stricter holds for both."""
        self._places = _smaller(self._places, max_concurrent)
        self._tokens = _smaller(self._tokens, requests_per_minute)

    def take(self, now: float) -> float | None:
        """0 if the caller may go ahead now, else after how many seconds to ask again;
        None if that depends on somebody's giving back a place."""
        held = self.held(now)
        if held > 0:
            return held
        if self._places is not None and self._under_way >= self._places:
            return None
        if self._tokens is not None:
            while self._taken and now - self._taken[0] >= MINUTE:
                self._taken.popleft()
            if len(self._taken) >= self._tokens:
                return self._taken[len(self._taken) - self._tokens] + MINUTE - now
            self._taken.append(now)
        self._under_way += 1
        return 0.0

    def give_back(self) -> None:
        self._under_way -= 1

    def hold(self, until: float) -> None:
        """Nobody goes ahead before `until`. A shorter hold does not shorten a longer one."""
        self._held_until = max(self._held_until, until)

    def held(self, now: float) -> float:
        """For how many more seconds nobody may go ahead."""
        return max(0.0, self._held_until - now)


class Limiter:
    """A bucket for threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._bucket = Bucket()
        self._clock = clock
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()

    def tighten(self, max_concurrent: int | None, requests_per_minute: int | None) -> None:
        with self._changed:
            self._bucket.tighten(max_concurrent, requests_per_minute)

    def hold(self, seconds: float) -> None:
        """What an endpoint that answered `Retry-After` asks of everybody."""
        with self._changed:
            self._bucket.hold(self._clock() + seconds)

    @contextmanager
    def turn(
        self, cancel: threading.Event | None = None, patience: float = float("inf")
    ) -> Iterator[float]:
        """Waits for a turn and has it for the block; yields the seconds waited.

        `patience` bounds only how long the endpoint may ask to be left alone: a queue of
        our own making is waited for, however long it is.
        """
        began = self._clock()
        self._wait(cancel, patience)
        try:
            yield self._clock() - began
        finally:
            with self._changed:
                self._bucket.give_back()
                self._changed.notify_all()

    def _wait(self, cancel: threading.Event | None, patience: float) -> None:
        ticket = object()
        with self._changed:
            self._queue.append(ticket)
            try:
                while True:
                    if cancel is not None and cancel.is_set():
                        raise Cancelled
                    now = self._clock()
                    if self._bucket.held(now) > patience:
                        raise HoldTooLong(self._bucket.held(now))
                    wait: float | None = None
                    if self._queue[0] is ticket:
                        wait = self._bucket.take(now)
                        if wait == 0:
                            return
                    self._changed.wait(_TICK_SECONDS if wait is None else min(wait, _TICK_SECONDS))
            finally:
                with suppress(ValueError):
                    self._queue.remove(ticket)
                self._changed.notify_all()


def _smaller(one: int | None, other: int | None) -> int | None:
    limits = [limit for limit in (one, other) if limit is not None]
    return min(limits, default=None)


_limiters: dict[tuple[str, str | None], Limiter] = {}
_registry = threading.Lock()


def limiter_of(endpoint: EndpointConfig) -> Limiter:
    """The one limiter of this process for the endpoint's address and key."""
    identity = (endpoint.base_url.rstrip("/"), endpoint.api_key_env)
    with _registry:
        limiter = _limiters.setdefault(identity, Limiter())
    limiter.tighten(endpoint.max_concurrent, endpoint.requests_per_minute)
    return limiter
