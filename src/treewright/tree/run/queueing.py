"""What waits for a worker: evaluations by parent, held-out sweeps, and what is due later.

The oldest goes first, of every parent at most so many at once.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Queue:
    """`alone` are evaluations with which an owner died: each of them runs without company."""

    parent_of: Callable[[str], str]
    to_measure: deque[str] = field(default_factory=deque)
    alone: deque[str] = field(default_factory=deque)
    _waiting: dict[str, deque[str]] = field(default_factory=dict)
    _delayed: list[tuple[float, str, bool]] = field(default_factory=list)
    _running: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        """How many a worker could begin now, but for the cap of their parents."""
        return len(self.to_measure) + sum(map(len, self._waiting.values()))

    @property
    def is_empty(self) -> bool:
        return not (self._waiting or self._delayed or self.alone or self.to_measure)

    @property
    def has_company(self) -> bool:
        """Whether there are evaluations beside those that run alone."""
        return bool(self._waiting or self._delayed)

    def add(self, eval_id: str) -> None:
        self._waiting.setdefault(self.parent_of(eval_id), deque()).append(eval_id)

    def delay(self, eval_id: str, seconds: float, *, is_measurement: bool = False) -> None:
        heapq.heappush(self._delayed, (time.monotonic() + seconds, eval_id, is_measurement))

    def take_due(self) -> None:
        """Puts those back in line whose time has come."""
        while self._delayed and self._delayed[0][0] <= time.monotonic():
            _, eval_id, is_measurement = heapq.heappop(self._delayed)
            if is_measurement:
                self.to_measure.append(eval_id)
            else:
                self.add(eval_id)

    def seconds_to_next(self) -> float | None:
        """Until one of those is due; None if there is none."""
        return max(0.0, self._delayed[0][0] - time.monotonic()) if self._delayed else None

    def next(self, most_per_parent: int | None) -> str | None:
        """The oldest evaluation that its parent's cap admits; it waits no longer."""
        allowed = [
            (queue[0], parent)
            for parent, queue in self._waiting.items()
            if most_per_parent is None or self._running[parent] < most_per_parent
        ]
        if not allowed:
            return None
        eval_id, parent = min(allowed)
        queue = self._waiting[parent]
        queue.popleft()
        if not queue:
            del self._waiting[parent]
        return eval_id

    def began(self, eval_id: str) -> None:
        self._running[self.parent_of(eval_id)] += 1

    def ended(self, eval_id: str) -> None:
        self._running[self.parent_of(eval_id)] -= 1
