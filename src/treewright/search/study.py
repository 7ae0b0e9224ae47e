"""A search that anybody can drive: ask, evaluate, tell; durable, resumable, repeatable.

`open_search` gives a `Search`. With a path, every outcome is on disk when `tell` returns, one
process owns the search at a time (the lease), and opening it again continues it: choices that
had no outcome are handed out again, nothing that was told is asked twice. Without a path it
lives in memory. Threads may share one `Search`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from treewright.kernel.errors import UsageError
from treewright.kernel.executors import registry
from treewright.kernel.procs import interrupts
from treewright.search import given, records, scores
from treewright.search.book import Book
from treewright.search.looking import Looking
from treewright.search.scores import Score
from treewright.search.tasks import Task
from treewright.search.tree import Node

if TYPE_CHECKING:
    from treewright.search.running import Callback, Evaluate, Run


class Search(Looking):
    """Made by `open_search`."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._running: list[Run] = []
        self._changed = threading.Condition(threading.RLock())

    # -- the three words ------------------------------------------------------------------

    def ask(self, *, wait: bool = True) -> Task | None:
        """The next task; None when the search is over.

        Where the next choice needs outcomes that are under way, `ask` waits for other threads
        to tell them. With `wait=False` it returns None then as well; `is_over` tells the two apart.
        """
        if wait:
            return self._ask_within(lambda: math.inf)
        with self._changed:
            return self._hand_out_next()

    def tell(
        self,
        task: Task | int,
        score: Score,
        *,
        data: Any = None,
        expandable: bool = True,
        prior: float = 1.0,
        worker: str | None = None,
    ) -> Node:
        """The score of a task: durable when this returns. `data` is JSON and goes with the node.

        What is not `expandable`, or does not pass the search's gate, gets no children. Telling
        the same again changes nothing; telling something else is an error.
        """
        number = _number(task)
        value, by_config = scores.check(score)
        line = given.as_read(
            records.Told(
                number=number,
                score=by_config if by_config is not None else value,
                data=data,
                expandable=expandable,
                prior=given.prior(prior),
                worker=worker,
            )
        )
        with self._changed:
            history = self._book.history
            known = history.nodes.get(number)
            if known is not None and (known.score, known.scores, known.data) == (
                value,
                by_config,
                line.data,
            ):
                return known
            history.check_pending(number)
            history.check_configs(by_config)
            self._settle(line)
            return history.nodes[number]

    def fail(
        self,
        task: Task | int,
        reason: str | Exception,
        *,
        exhausts_parent: bool = False,
        worker: str | None = None,
    ) -> None:
        """There is no score and never will be: the policy learns that this was no good.

        `exhausts_parent`: nothing more can be tried under the parent, so it gets no more tasks.
        """
        number = _number(task)
        with self._changed:
            self._book.history.check_pending(number)
            line = given.as_read(
                records.Failed(
                    number=number,
                    reason=given.in_words(reason),
                    exhausts_parent=exhausts_parent,
                    worker=worker,
                )
            )
            self._settle(line)

    def release(self, task: Task | int, reason: str | Exception = "") -> None:
        """A fault: the task goes back and is handed out again; nothing is learned from it.

        One that went back already, or that somebody else has by now, is left alone.
        """
        number = _number(task)
        with self._changed:
            history = self._book.history
            history.check_pending(number)
            now = history.attempts.get(number, 1)
            if number not in self._book.tasks or (isinstance(task, Task) and task.attempt != now):
                return
            line = records.Returned(number=number, reason=given.in_words(reason))
            with interrupts.deferred():
                self._book.take_back(line)
                self._changed.notify_all()

    def run(
        self,
        evaluate: Evaluate,
        *,
        workers: int = 1,
        backend: str | None = None,
        cluster: str | None = None,
        catch: type[Exception] | tuple[type[Exception], ...] = (),
        timeout: float | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Self:
        """Asks, evaluates and tells until the search is over, `workers` at a time.

        `evaluate(task)` returns a score or a `Result`. `backend` is `inline`, `threads`, `dask`
        (at `cluster`, or on this machine) or a plug-in's name. An exception stops the search and
        leaves its task untried, except those of `catch`, which are failures of the task.

        After `timeout` seconds nothing more is begun; what is under way is finished. Each of
        `callbacks` is called with the search and a `Finished` after every outcome, one at a time.
        """
        from treewright.search.running import Run, backend_of

        given.workers(workers)
        given.timeout(timeout)
        called = given.callbacks(callbacks)
        chosen = backend_of(workers, backend, cluster)  # before anything is settled by beginning
        with self._changed, interrupts.deferred():
            self._book.begin(workers)
        caught = catch if isinstance(catch, tuple) else (catch,)
        work = evaluate if chosen.travels else self._book.tasks.evaluating(evaluate)
        run = Run(self, self._ask_within, caught, called, timeout)
        with self._changed:
            self._running.append(run)
        try:
            run.to_the_end(work, chosen, registry.Place(workers, cluster))
        finally:
            with self._changed:
                self._running.remove(run)
        return self

    def stop(self) -> None:
        """From a callback or another thread: `run` begins nothing more, finishes what is under way
        and returns, in every thread that runs this search. Running again goes on."""
        with self._changed:
            if not self._running:
                raise UsageError("stop() ends a run() that is going on, and none is")
            for run in self._running:
                run.stop()
            self._changed.notify_all()

    def set_budget(self, evaluations: int | None) -> None:
        """Another limit on evaluations from now on; None is no limit."""
        given.budget(evaluations)
        with self._changed:
            if evaluations != self.budget:
                self._book.set_budget(evaluations)
                self._changed.notify_all()

    # -- ending ---------------------------------------------------------------------------

    def close(self) -> None:
        """Gives the search up for the next process. What was asked and not told goes back."""
        with self._changed:
            self._book.close()
            self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- inside ---------------------------------------------------------------------------

    def _ask_within(self, seconds_left: Callable[[], float]) -> Task | None:
        """Waits while there are seconds left, which is looked at whenever something changes."""
        with self._changed:
            while (seconds := seconds_left()) > 0:
                task = self._hand_out_next()
                if task is not None or self._book.history.is_over:
                    return task
                self._book.tasks.check_may_wait(self.settings.lookahead)
                self._changed.wait(min(seconds, threading.TIMEOUT_MAX))
            return None

    def _hand_out_next(self) -> Task | None:
        task: Task | None = None
        try:
            with interrupts.deferred():
                self._book.begin(1)
                task = self._book.next_task()
        except BaseException:
            if task is not None:  # interrupted: nobody gets it
                self._book.tasks.put_back(task.number)
                self._changed.notify_all()
            raise
        return task

    def _settle(self, line: records.Told | records.Failed) -> None:
        with interrupts.deferred():
            self._book.settle(line)
            self._changed.notify_all()


def _number(task: Task | int) -> int:
    if isinstance(task, Task):
        return task.number
    if type(task) is int:
        return task
    raise UsageError(f"a task is what ask() gave, or its number, not {task!r}")
