"""Separate lanes for light and heavy goals, so that neither kind delays the other. Pure.

A goal without a slot waits in order of arrival. A free slot goes to the oldest goal of its lane, so
every goal gets its turn and no slot is idle while a goal waits. A goal that has to be tried again,
because no Lean session was available, comes back after a growing delay and keeps its position in
the order; other goals may start during the delay.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
LaneName = Literal["light", "heavy"]

FIRST_DELAY_SECONDS = 0.5
MAX_DELAY_SECONDS = 30.0


def backoff(retries: int) -> float:
    """Return the seconds before a retry: doubling with each retry, up to a maximum."""
    return min(FIRST_DELAY_SECONDS * 2.0 ** min(retries - 1, 16), MAX_DELAY_SECONDS)


@dataclass(order=True, slots=True)
class Ticket(Generic[T]):
    """An item in a lane. Tickets sort by arrival."""

    number: int
    lane: LaneName = field(compare=False)
    item: T = field(compare=False)
    retries: int = field(default=0, compare=False)


class _Lane(Generic[T]):
    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.running = 0
        self.waiting: list[Ticket[T]] = []

    @property
    def free(self) -> int:
        return self.slots - self.running


class Lanes(Generic[T]):
    """Decides which item may start. The caller gives all times; this class reads no clock."""

    def __init__(self, max_light: int, max_heavy: int) -> None:
        if max_light < 1 or max_heavy < 1:
            raise ValueError("each lane needs at least one slot")
        self._lanes: dict[str, _Lane[T]] = {"light": _Lane(max_light), "heavy": _Lane(max_heavy)}
        self._delayed: list[tuple[float, Ticket[T]]] = []
        self._arrived = 0

    def submit(self, item: T, *, heavy: bool) -> None:
        """Add an item to a lane."""
        self._arrived += 1
        ticket = Ticket(self._arrived, "heavy" if heavy else "light", item)
        heapq.heappush(self._lanes[ticket.lane].waiting, ticket)

    def admit(self, now: float) -> Ticket[T] | None:
        """Give a slot to the oldest item that may start now, and return its ticket."""
        while self._delayed and self._delayed[0][0] <= now:
            _, back = heapq.heappop(self._delayed)
            heapq.heappush(self._lanes[back.lane].waiting, back)
        open_lanes = [lane for lane in self._lanes.values() if lane.free > 0 and lane.waiting]
        if not open_lanes:
            return None
        lane = min(open_lanes, key=lambda lane: lane.waiting[0])
        lane.running += 1
        return heapq.heappop(lane.waiting)

    def release(self, ticket: Ticket[T]) -> None:
        """Free the slot of an item."""
        self._lanes[ticket.lane].running -= 1

    def retry(self, ticket: Ticket[T], now: float) -> None:
        """Free the slot of an item that has to be tried again later."""
        self.release(ticket)
        ticket.retries += 1
        heapq.heappush(self._delayed, (now + backoff(ticket.retries), ticket))

    @property
    def next_due(self) -> float | None:
        """The time at which the next delayed item comes back."""
        return self._delayed[0][0] if self._delayed else None

    @property
    def running(self) -> int:
        """The number of items with a slot."""
        return sum(lane.running for lane in self._lanes.values())

    @property
    def waiting(self) -> int:
        """The number of items without a slot, also of delayed ones."""
        return sum(len(lane.waiting) for lane in self._lanes.values()) + len(self._delayed)
