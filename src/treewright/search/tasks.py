"""Tasks of a search and their results, and the queue of tasks that threads work on."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from treewright.kernel.errors import UsageError
from treewright.search.node import Node
from treewright.search.scores import Score

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Task:
    """A choice to evaluate: a child of `parent`, made by `action`.

    Attributes:
        number: The number of the choice, counted from 1.
        parent: The node under which the child grows.
        action: The way to grow it, if the search has several.
        seed: A seed for the evaluation, the same at every attempt.
        attempt: Counts from 1; a task whose worker was lost has a second attempt.
    """

    number: int
    parent: Node
    action: str | None
    seed: int
    attempt: int = 1

    @property
    def path(self) -> list[Node]:
        """The nodes from the root to the parent."""
        return self.parent.path()


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an evaluation that returns more than a score.

    Attributes:
        score: A number, or numbers by config.
        data: A JSON value that is recorded with the node.
        expandable: Whether the node may get children.
        prior: The weight of the node for policies that use priors.
    """

    score: Score
    data: Any = None
    expandable: bool = True
    prior: float = 1.0


class EvaluationFailed(Exception):
    """Raised by an evaluation that has no score, and would have none at another try."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A task with its outcome: a node, or the reason of the failure."""

    number: int
    node: Node | None
    reason: str | None = None


class TaskQueue:
    """The tasks that threads work on, and those that were given back. Not locked.

    A task that was given back is handed out again before any new one, the oldest first.
    """

    def __init__(self, returned: Iterable[int] = ()) -> None:
        self._returned = sorted(returned)
        self._holders: dict[int, int] = {}
        self._evaluating: set[int] = set()

    def __contains__(self, number: int) -> bool:
        """Whether a thread works on the task."""
        return number in self._holders

    def hand_out(self, number: int) -> None:
        """Give a task to the calling thread."""
        self._holders[number] = threading.get_ident()

    def finish(self, number: int) -> None:
        """Remove a task that has its outcome."""
        self._holders.pop(number, None)

    def give_back(self, number: int) -> None:
        """Queue a task again."""
        self._holders.pop(number, None)
        heapq.heappush(self._returned, number)

    def next_returned(self) -> int | None:
        """Return the oldest task that was given back."""
        return heapq.heappop(self._returned) if self._returned else None

    def marking_evaluations(self, evaluate: Callable[[Task], T]) -> Callable[[Task], T]:
        """Return `evaluate`, marking its thread while it runs; see `check_may_wait`."""

        def marked(task: Task) -> T:
            me = threading.get_ident()
            self._evaluating.add(me)
            try:
                return evaluate(task)
            finally:
                self._evaluating.discard(me)

        return marked

    def check_may_wait(self, lookahead: int) -> None:
        """Raise UsageError if the calling thread would wait for ever for another task's outcome."""
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
