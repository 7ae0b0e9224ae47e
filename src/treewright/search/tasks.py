"""Tasks: what is handed out, who has which, which came back, and who may wait for them.

Nothing here is locked: a `Search` looks at it under its own lock.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from treewright.kernel.errors import UsageError
from treewright.search.tree import Node

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """A choice to evaluate: grow a child under `parent`, by `action` where there are several.

    `seed` is the same whenever this choice is evaluated, for what needs chance. `attempt` counts
    from 1: a task that was lost is handed out again.
    """

    number: int
    parent: Node
    action: str | None
    seed: int
    attempt: int = 1

    @property
    def path(self) -> list[Node]:
        """From the root to the parent."""
        return self.parent.path()


class Tasks:
    """By number. Those that came back are handed out again first, the oldest of them first."""

    def __init__(self, returned: Iterable[int] = ()) -> None:
        self._returned = sorted(returned)
        self._holders: dict[int, int] = {}
        self._evaluating: set[int] = set()

    def __contains__(self, number: int) -> bool:
        """Whether somebody has it."""
        return number in self._holders

    def hand_out(self, number: int) -> None:
        """The calling thread has it now."""
        self._holders[number] = threading.get_ident()

    def settle(self, number: int) -> None:
        self._holders.pop(number, None)

    def put_back(self, number: int) -> None:
        self._holders.pop(number, None)
        heapq.heappush(self._returned, number)

    def next_returned(self) -> int | None:
        return heapq.heappop(self._returned) if self._returned else None

    def evaluating(self, evaluate: Callable[[Task], T]) -> Callable[[Task], T]:
        """The same, remembered as an evaluation while it runs: in it nobody may wait for others."""

        def marked(task: Task) -> T:
            me = threading.get_ident()
            self._evaluating.add(me)
            try:
                return evaluate(task)
            finally:
                self._evaluating.discard(me)

        return marked

    def check_may_wait(self, lookahead: int) -> None:
        """Refuses a wait for outcomes that only the calling thread can tell."""
        me = threading.get_ident()
        if me in self._evaluating:
            raise UsageError(
                "ask() would wait inside an evaluation of run(), perhaps for that evaluation "
                "itself; use ask(wait=False) there"
            )
        if all(holder == me for holder in self._holders.values()):
            raise UsageError(
                "ask() would wait for ever: the next choice needs an outcome that only this thread "
                "can tell; tell or release what was asked first, begin the search with a larger "
                f"lookahead than {lookahead}, or use ask(wait=False) where other threads tell"
            )
