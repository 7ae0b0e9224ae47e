"""The loop of `Search.run`: ask, give tasks to an executor, tell the outcomes.

A lost worker is a fault: its task is handed out again. An exception of an evaluation stops the
search and leaves its task without an outcome, unless the caller counts that exception as a failure.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from treewright.kernel.errors import UsageError
from treewright.kernel.executors import backends
from treewright.kernel.executors.protocol import Done, WorkerLost
from treewright.kernel.procs.console import deferred_interrupts
from treewright.search.scores import Score
from treewright.search.tasks import EvaluationFailed, Finished, Result, Task

if TYPE_CHECKING:
    from treewright.search.durable_search import Search

Evaluate = Callable[[Task], "Score | Result"]
Callback = Callable[["Search", Finished], object]

_LOSSES_PER_TASK = 3
"""The search stops when a task has lost this many workers."""


class EvaluationLoop:
    """One call of `Search.run`.

    Args:
        search: The search.
        ask_within: Waits for a task. Its argument returns the seconds that are left to wait.
        catch: The exceptions of an evaluation that are failures of its task, besides
            `EvaluationFailed`.
        callbacks: Functions that are called after every outcome.
        timeout: Seconds after which no task is begun; None for no limit.

    Raises:
        UsageError: An argument has a wrong value.
    """

    def __init__(
        self,
        search: Search,
        ask_within: Callable[[Callable[[], float]], Task | None],
        catch: type[Exception] | tuple[type[Exception], ...],
        callbacks: Iterable[Callback],
        timeout: float | None,
    ) -> None:
        if callable(callbacks) or not isinstance(callbacks, Iterable):
            raise UsageError("callbacks are several functions: write [...] around it")
        if timeout is not None and (
            isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0
        ):
            raise UsageError(f"timeout is a number of seconds, not negative: not {timeout!r}")
        self._search = search
        self._ask_within = ask_within
        self._failures = (EvaluationFailed, *(catch if isinstance(catch, tuple) else (catch,)))
        self._callbacks = tuple(callbacks)
        self._until = math.inf if timeout is None else time.monotonic() + timeout
        self._losses: dict[int, int] = {}
        self._error: BaseException | None = None
        self._is_stopped = False

    def stop(self) -> None:
        """Begin no further task."""
        self._is_stopped = True

    def run(
        self, evaluate: Evaluate, backend: backends.Backend, options: backends.ExecutorOptions
    ) -> None:
        """Evaluate tasks until the search is over, then wait for those under way.

        Raises:
            Exception: An evaluation or a callback raised it.
        """
        search = self._search
        with backends.open_executor(backend, evaluate, options) as executor:
            under_way: dict[int, Task] = {}
            try:
                while True:
                    while len(under_way) < executor.capacity and self._seconds_left() > 0:
                        with deferred_interrupts():
                            task = search.ask(wait=False)
                            if task is None:
                                break
                            under_way[task.number] = task
                            executor.submit(task)
                    if not under_way:
                        # The next choice needs outcomes of tasks that other threads asked for.
                        task = self._ask_within(self._seconds_left)
                        if task is None:
                            break
                        under_way[task.number] = task
                        executor.submit(task)
                        continue
                    done = executor.next_done()
                    if done is not None:
                        with deferred_interrupts():
                            del under_way[done.request.number]
                            finished = self._tell_outcome(done)
                        if finished is not None:
                            self._call_back(finished)
            finally:
                for task in under_way.values():
                    # A UsageError here, such as for a closed search, would hide the first error.
                    with contextlib.suppress(UsageError):
                        search.release(task, "interrupted")
        if self._error is not None:
            raise self._error

    def _seconds_left(self) -> float:
        """Return for how many seconds tasks may still be begun."""
        if self._error is not None or self._is_stopped:
            return 0.0
        return self._until - time.monotonic() if self._until < math.inf else math.inf

    def _tell_outcome(self, done: Done[Task, Score | Result]) -> Finished | None:
        """Tell the outcome of a task, or give the task back and keep the error."""
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
            except UsageError as wrong:  # the evaluation did not return a score
                search.release(task, str(wrong))
                self._error = wrong
                return None
            return Finished(task.number, node)
        if isinstance(error, self._failures):
            reason = f"{type(error).__name__}: {error}"
            search.fail(task, reason, worker=worker)
            return Finished(task.number, None, reason)
        search.release(task, f"{type(error).__name__}: {error}")
        losses = 0
        if isinstance(error, WorkerLost):
            losses = self._losses[task.number] = self._losses.get(task.number, 0) + 1
        if losses == 0 or losses >= _LOSSES_PER_TASK:
            self._error = error
        return None

    def _call_back(self, finished: Finished) -> None:
        """Call the callbacks. Their exceptions stop the search; the outcome is recorded already."""
        try:
            for callback in self._callbacks:
                callback(self._search, finished)
        except BaseException as error:
            self._error = error


def choose_backend(workers: int, name: str | None, cluster: str | None) -> backends.Backend:
    """Return the backend for the evaluations.

    Raises:
        UsageError: There is no such backend, or it cannot have as many workers.
    """
    if type(workers) is not int or workers < 1:
        raise UsageError(f"workers is a whole number, at least 1: not {workers!r}")
    chosen = backends.choose(name, cluster, "inline" if workers == 1 else "threads")
    if chosen.is_sequential and workers != 1:
        raise UsageError(f"backend={name!r} has one worker")
    return chosen
