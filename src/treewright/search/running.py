"""Workers for a search: asks, hands tasks to an executor, tells what comes back.

The loop that every search has: hand out while there is room, wait for one, settle it. A
worker that is lost is a fault, and its task is handed out again; an exception of the evaluation
stops the search with its task untried, unless the caller said that it means failure.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treewright.kernel.errors import UsageError
from treewright.kernel.executors import registry
from treewright.kernel.executors.base import Done, WorkerLost
from treewright.kernel.procs import interrupts
from treewright.search.scores import Score

if TYPE_CHECKING:
    from treewright.search.node import Node
    from treewright.search.study import Search
    from treewright.search.tasks import Task

_MOST_LOSSES = 3


class EvaluationFailed(Exception):
    """Raised by an evaluation: there is no score, and trying again would not give one."""


@dataclass(frozen=True, slots=True)
class Result:
    """What an evaluation returns when there is more to tell than a score."""

    score: Score
    data: Any = None
    expandable: bool = True
    prior: float = 1.0


Evaluate = Callable[["Task"], "Score | Result"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A task that has its outcome: a node, or the reason why there is none."""

    number: int
    node: Node | None
    reason: str | None = None


Callback = Callable[["Search", Finished], object]


class Run:
    """One `run` of a search. What is under way when something ends it is waited for."""

    def __init__(
        self,
        search: Search,
        ask_within: Callable[[Callable[[], float]], Task | None],
        catch: tuple[type[Exception], ...],
        callbacks: tuple[Callback, ...],
        timeout: float | None,
    ) -> None:
        self._search = search
        self._ask_within = ask_within
        self._catch = catch
        self._callbacks = callbacks
        self._until = math.inf if timeout is None else time.monotonic() + timeout
        self._losses: dict[int, int] = {}
        self._problem: BaseException | None = None
        self._is_stopped = False

    def stop(self) -> None:
        self._is_stopped = True

    def _seconds_left(self) -> float:
        """To begin something more."""
        if self._problem is not None or self._is_stopped:
            return 0.0
        return self._until - time.monotonic() if self._until < math.inf else math.inf

    def to_the_end(
        self, evaluate: Evaluate, backend: registry.Backend, place: registry.Place
    ) -> None:
        """Hands out while there is room, waits for one, settles it."""
        search = self._search
        with registry.running(backend, evaluate, place) as executor:
            under_way: dict[int, Task] = {}
            try:
                while True:
                    while len(under_way) < executor.capacity and self._seconds_left() > 0:
                        with interrupts.deferred():
                            task = search.ask(wait=False)
                            if task is None:
                                break
                            under_way[task.number] = task
                            executor.submit(task)
                    if under_way:
                        done = executor.next_done()
                        if done is not None:
                            with interrupts.deferred():
                                del under_way[done.request.number]
                                finished = self._settle(done)
                            if finished is not None:
                                self._say(finished)
                    # Whatever the next choice needs was asked for by others: wait for them.
                    elif (task := self._ask_within(self._seconds_left)) is None:
                        break
                    else:
                        under_way[task.number] = task
                        executor.submit(task)
            finally:
                for task in under_way.values():
                    # Closed, or told by the evaluation itself: no reason to hide what went wrong.
                    with contextlib.suppress(UsageError):
                        search.release(task, "interrupted")
        if self._problem is not None:
            raise self._problem

    def _settle(self, done: Done[Task, Score | Result]) -> Finished | None:
        """Tells what came of a task, or keeps what the search must stop at."""
        search, task, error = self._search, done.request, done.error
        worker = done.worker.name if done.worker else None
        if error is None:
            outcome = done.outcome
            result = outcome if isinstance(outcome, Result) else Result(outcome)  # type: ignore[arg-type]
            try:
                node = search.tell(
                    task,
                    result.score,
                    data=result.data,
                    expandable=result.expandable,
                    prior=result.prior,
                    worker=worker,
                )
            except UsageError as wrong:  # what was returned is no score
                search.release(task, str(wrong))
                self._problem = wrong
                return None
            return Finished(task.number, node)
        if isinstance(error, (EvaluationFailed, *self._catch)):
            reason = f"{type(error).__name__}: {error}"
            search.fail(task, reason, worker=worker)
            return Finished(task.number, None, reason)
        search.release(task, f"{type(error).__name__}: {error}")
        losses = 0
        if isinstance(error, WorkerLost):
            losses = self._losses[task.number] = self._losses.get(task.number, 0) + 1
        if losses == 0 or losses >= _MOST_LOSSES:
            self._problem = error
        return None

    def _say(self, finished: Finished) -> None:
        """To whoever wants to know. What they raise stops the search; the outcome is told."""
        try:
            for callback in self._callbacks:
                callback(self._search, finished)
        except BaseException as error:
            self._problem = error


def backend_of(workers: int, backend: str | None, cluster: str | None) -> registry.Backend:
    """Where the evaluations are to run; one line if there is no such place."""
    chosen = registry.choose(backend, cluster, "inline" if workers == 1 else "threads")
    if chosen.single and workers != 1:
        raise UsageError(f"backend={backend!r} has one worker")
    return chosen
