"""Light and heavy goals in lanes of their own, so that neither keeps the other waiting. Pure.

A goal that finds no slot is put back and waits in order of arrival; a slot that frees goes to
the oldest goal of its lane, so none starves and no slot is idle while somebody waits. A goal
that has to be tried again (its Lean could not be had) comes back after a growing delay, keeps
its place in the order, and does not hold up others meanwhile.
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
    """Seconds until the `retries`-th new try: doubling, bounded."""
    return min(FIRST_DELAY_SECONDS * 2.0 ** min(retries - 1, 16), MAX_DELAY_SECONDS)


@dataclass(order=True, slots=True)
class Ticket(Generic[T]):
    """Something that wants a slot. Tickets order by arrival."""

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
    """Who may run now. Times are the caller's; nothing here looks at a clock."""

    def __init__(self, max_light: int, max_heavy: int) -> None:
        if max_light < 1 or max_heavy < 1:
            raise ValueError("each lane needs at least one slot")
        self._lanes: dict[str, _Lane[T]] = {"light": _Lane(max_light), "heavy": _Lane(max_heavy)}
        self._delayed: list[tuple[float, Ticket[T]]] = []
        self._arrived = 0

    def submit(self, item: T, *, heavy: bool) -> None:
        self._arrived += 1
        ticket = Ticket(self._arrived, "heavy" if heavy else "light", item)
        heapq.heappush(self._lanes[ticket.lane].waiting, ticket)

    def admit(self, now: float) -> Ticket[T] | None:
        """The oldest goal that may start now; it has a slot from then on."""
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
        self._lanes[ticket.lane].running -= 1

    def retry(self, ticket: Ticket[T], now: float) -> None:
        """Frees the slot of a goal that has to be tried again later."""
        self.release(ticket)
        ticket.retries += 1
        heapq.heappush(self._delayed, (now + backoff(ticket.retries), ticket))

    @property
    def next_due(self) -> float | None:
        """When the next delayed goal comes back."""
        return self._delayed[0][0] if self._delayed else None

    @property
    def running(self) -> int:
        return sum(lane.running for lane in self._lanes.values())

    @property
    def waiting(self) -> int:
        return sum(len(lane.waiting) for lane in self._lanes.values()) + len(self._delayed)
