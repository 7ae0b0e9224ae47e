"""The queue of requests of this process to an endpoint, within the endpoint's limits.

All threads that ask the same address with the same key variable share one queue, whatever the
model. Each process has separate queues, so processes that share an endpoint divide its limits among
them. A server that is asked too often answers `Retry-After`; it stops all requests of the process
that receives it.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from treewright.kernel import http_client
from treewright.llm import keys
from treewright.llm.endpoint import Endpoint
from treewright.llm.limits import MINUTE, Limits, Load, wait_seconds

LONGEST_PAUSE_SECONDS = 3600.0
"""A longer `Retry-After` is shortened to this: a wrong header must not close an endpoint."""
_POLL_SECONDS = 0.05
_LONGEST_SLEEP_SECONDS = 1.0


class PauseTooLong(Exception):
    """The endpoint asked for a longer pause than the caller waits."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"asked for no requests for another {seconds:.0f} s")


@dataclass(slots=True, eq=False)
class Ticket:
    """A request in a queue. `sent_at` is None while it waits."""

    tokens: int
    arrived_at: float
    sent_at: float | None = None

    @property
    def waited_seconds(self) -> float:
        return 0.0 if self.sent_at is None else self.sent_at - self.arrived_at


class RequestQueue:
    """The requests to one endpoint, first come, first served. For threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._limits = Limits()
        self._waiting: list[Ticket] = []
        self._under_way: set[Ticket] = set()
        self._sent: deque[Ticket] = deque()
        self._paused_until = -math.inf

    async def admit(
        self, tokens: int, patience: float, unwanted: http_client.Unwanted = lambda: False
    ) -> Ticket:
        """Wait until a request may be sent.

        Args:
            tokens: The tokens that the request may use.
            patience: The longest pause, in seconds, that the endpoint may ask for. The wait for
                other requests is not limited.
            unwanted: Ends the wait when it returns true.

        Returns:
            The ticket, to be given to `finish` when the request has ended.

        Raises:
            PauseTooLong: The endpoint asked for a longer pause than `patience`.
            http_client.Cancelled: `unwanted` returned true.
        """
        ticket = self.enter(tokens)
        try:
            while (seconds := self.try_send(ticket)) != 0:
                paused = self._paused_until - self._clock()
                if paused > patience:
                    raise PauseTooLong(paused)
                sleep = min(_POLL_SECONDS if seconds is None else seconds, _LONGEST_SLEEP_SECONDS)
                await http_client.within(asyncio.sleep(sleep), math.inf, unwanted)
        except BaseException:
            self.finish(ticket)
            raise
        return ticket

    def restrict(self, limits: Limits) -> None:
        """Apply limits to all later requests; of two values for a limit the smaller holds."""
        with self._lock:
            self._limits = self._limits.stricter(limits)

    def pause(self, seconds: float) -> None:
        """Send no request for some seconds. A longer pause stays as it is."""
        with self._lock:
            until = self._clock() + min(seconds, LONGEST_PAUSE_SECONDS)
            self._paused_until = max(self._paused_until, until)

    def enter(self, tokens: int) -> Ticket:
        """Add a request to the queue."""
        with self._lock:
            ticket = Ticket(tokens, self._clock())
            self._waiting.append(ticket)
            return ticket

    def try_send(self, ticket: Ticket) -> float | None:
        """Send a waiting request if the limits allow it; return what `limits.wait_seconds` does."""
        with self._lock:
            now = self._clock()
            while self._sent and (self._sent[0].sent_at or 0.0) <= now - MINUTE:
                self._sent.popleft()
            earlier = self._waiting[: self._waiting.index(ticket)]
            load = Load(
                under_way=len(self._under_way),
                sent=[(sent.sent_at or 0.0, sent.tokens) for sent in self._sent],
                paused_until=self._paused_until,
                waiting_earlier=len(earlier),
                tokens_earlier=sum(other.tokens for other in earlier),
            )
            seconds = wait_seconds(self._limits, load, now, ticket.tokens)
            if seconds == 0:
                ticket.sent_at = now
                self._waiting.remove(ticket)
                self._under_way.add(ticket)
                self._sent.append(ticket)
            return seconds

    def finish(self, ticket: Ticket, tokens: int | None = None) -> None:
        """Remove a request that has ended. `tokens` is its true use, where that is known."""
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            self._under_way.discard(ticket)
            if tokens is not None:
                ticket.tokens = tokens


_queues: dict[tuple[str, str | None], RequestQueue] = {}
_queues_lock = threading.Lock()


def queue_for(endpoint: Endpoint) -> RequestQueue:
    """Return the queue of an endpoint, restricted to the limits that the endpoint sets."""
    address = endpoint.base_url.rstrip("/"), keys.name_for(endpoint)
    with _queues_lock:
        queue = _queues.setdefault(address, RequestQueue())
    queue.restrict(Limits.of(endpoint))
    return queue


def forget_queues() -> None:
    """Start with empty queues, in a forked process: the requests belong to its parent."""
    global _queues_lock
    _queues_lock = threading.Lock()
    _queues.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_queues)
