"""The order in which waiting work starts: held-out sweeps, then evaluations, oldest first.

A parent has at most `max_per_node` evaluations under way. An evaluation that is suspected of
killing its coordinator runs alone. A delayed retry waits until it is due.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Scheduler:
    """The queue of a loop and the work that is under way.

    A *measurement* is the held-out sweep of an evaluated candidate.

    Attributes:
        find_parent: Returns the parent node of an evaluation.
        capacity: The number of workers.
        max_per_node: The most evaluations of one parent at a time; None for no limit.
        in_flight: Evaluations and held-out sweeps that workers have now.
    """

    find_parent: Callable[[str], str]
    capacity: int
    max_per_node: int | None = None
    in_flight: int = 0
    _measurements: deque[str] = field(default_factory=deque)
    _suspects: deque[str] = field(default_factory=deque)
    _waiting: dict[str, deque[str]] = field(default_factory=dict)
    _delayed: list[tuple[float, str, bool]] = field(default_factory=list)
    _running: Counter[str] = field(default_factory=Counter)
    """The number of evaluations under way, by parent."""
    _exclusive: set[str] = field(default_factory=set)
    """Suspects under way: at most one."""
    _slots: set[int] = field(default_factory=set)

    # -- adding work ----------------------------------------------------------------------

    def add(self, eval_id: str) -> None:
        self._waiting.setdefault(self.find_parent(eval_id), deque()).append(eval_id)

    def add_suspect(self, eval_id: str) -> None:
        """Add an evaluation that may start only while no other work runs."""
        self._suspects.append(eval_id)

    def add_measurement(self, eval_id: str) -> None:
        self._measurements.append(eval_id)

    def delay(self, eval_id: str, seconds: float, *, is_measurement: bool = False) -> None:
        heapq.heappush(self._delayed, (time.monotonic() + seconds, eval_id, is_measurement))

    def add_due(self) -> None:
        """Move delayed work that is due into the queue."""
        while self._delayed and self._delayed[0][0] <= time.monotonic():
            _, eval_id, is_measurement = heapq.heappop(self._delayed)
            if is_measurement:
                self.add_measurement(eval_id)
            else:
                self.add(eval_id)

    # -- taking work ----------------------------------------------------------------------

    @property
    def has_free_worker(self) -> bool:
        return self.in_flight < self.capacity

    @property
    def room(self) -> int:
        """The number of free workers beyond those that queued work will need.

        Work that waits for the limit of its parent counts as queued.
        """
        waiting = len(self._measurements) + sum(map(len, self._waiting.values()))
        return self.capacity - self.in_flight - waiting

    @property
    def is_empty(self) -> bool:
        return not (self._waiting or self._delayed or self._suspects or self._measurements)

    @property
    def is_exclusive(self) -> bool:
        """Whether a suspect runs, so that nothing may start."""
        return bool(self._exclusive)

    def seconds_to_next(self) -> float | None:
        """Return the seconds until delayed work is due; None if there is none."""
        return max(0.0, self._delayed[0][0] - time.monotonic()) if self._delayed else None

    def take_measurement(self) -> str | None:
        """Return the next held-out sweep if a worker is free. Sweeps finish work that was begun."""
        return self._measurements.popleft() if self._measurements and self.has_free_worker else None

    def take_evaluation(self) -> str | None:
        """Return the oldest evaluation that may start now, and remove it from the queue."""
        if not self.has_free_worker:
            return None
        allowed = [
            (queue[0], parent)
            for parent, queue in self._waiting.items()
            if self.max_per_node is None or self._running[parent] < self.max_per_node
        ]
        if not allowed:
            return None
        eval_id, parent = min(allowed)
        queue = self._waiting[parent]
        queue.popleft()
        if not queue:
            del self._waiting[parent]
        return eval_id

    def take_suspect(self) -> str | None:
        """Return a suspect if no other work runs or waits."""
        if not self._suspects or self.in_flight or self._waiting or self._delayed:
            return None
        return self._suspects.popleft()

    # -- work under way -------------------------------------------------------------------

    def begin(self, eval_id: str, *, is_measurement: bool = False, alone: bool = False) -> int:
        """Count work as under way; return its slot, the lowest number that is free."""
        self.in_flight += 1
        if not is_measurement:
            self._running[self.find_parent(eval_id)] += 1
        if alone:
            self._exclusive.add(eval_id)
        slot = min(set(range(len(self._slots) + 1)) - self._slots)
        self._slots.add(slot)
        return slot

    def end(self, eval_id: str, slot: int | None, *, is_measurement: bool = False) -> None:
        """Count work as ended; its slot is free again."""
        self.in_flight -= 1
        if slot is not None:
            self._slots.discard(slot)
        if not is_measurement:
            self._running[self.find_parent(eval_id)] -= 1
            self._exclusive.discard(eval_id)
