"""Workers for a search: asks, hands tasks to an executor, tells what comes back.

The loop that every search has: hand out while there is room, wait for one, settle it. A
worker that is lost is a fault, and its task is handed out again; an exception of the evaluation
stops the search with its task untried, unless the caller said that it means failure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treewright.kernel import interrupts
from treewright.kernel.errors import UsageError
from treewright.kernel.executors import registry
from treewright.kernel.executors.base import Done, WorkerLost
from treewright.search.scores import Score

if TYPE_CHECKING:
    from treewright.search.study import Search, Task

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


def run(
    search: Search,
    evaluate: Evaluate,
    workers: int,
    backend: registry.Backend,
    cluster: str | None,
    catch: tuple[type[Exception], ...],
) -> None:
    """Until the search is over; what is under way when something goes wrong is waited for."""
    losses: dict[int, int] = {}
    stopped: BaseException | None = None
    with registry.running(backend, evaluate, registry.Place(workers, cluster)) as executor:
        under_way: dict[int, Task] = {}
        try:
            while True:
                while stopped is None and len(under_way) < executor.capacity:
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
                            stopped = _settle(search, done, catch, losses) or stopped
                # Whatever the next choice needs was asked for by others: `ask` waits for them.
                elif stopped is not None or (task := search.ask()) is None:
                    break
                else:
                    under_way[task.number] = task
                    executor.submit(task)
        finally:
            for task in under_way.values():
                # Closed, or told by the evaluation itself: no reason to hide what went wrong.
                with contextlib.suppress(UsageError):
                    search.release(task, "interrupted")
    if stopped is not None:
        raise stopped


def _settle(
    search: Search,
    done: Done[Task, Score | Result],
    catch: tuple[type[Exception], ...],
    losses: dict[int, int],
) -> BaseException | None:
    """Tells what came of a task; returns what the search must stop at."""
    task, error = done.request, done.error
    worker = done.worker.name if done.worker else None
    if error is None:
        outcome = done.outcome
        result = outcome if isinstance(outcome, Result) else Result(outcome)  # type: ignore[arg-type]
        try:
            search.tell(
                task,
                result.score,
                data=result.data,
                expandable=result.expandable,
                prior=result.prior,
                worker=worker,
            )
        except UsageError as wrong:  # what was returned is no score
            search.release(task, str(wrong))
            return wrong
        return None
    if isinstance(error, (EvaluationFailed, *catch)):
        search.fail(task, f"{type(error).__name__}: {error}", worker=worker)
        return None
    search.release(task, f"{type(error).__name__}: {error}")
    if isinstance(error, WorkerLost):
        losses[task.number] = losses.get(task.number, 0) + 1
        return error if losses[task.number] >= _MOST_LOSSES else None
    return error


def backend_of(workers: int, backend: str | None, cluster: str | None) -> registry.Backend:
    """Where the evaluations are to run; one line if there is no such place."""
    chosen = registry.choose(backend, cluster, "inline" if workers == 1 else "threads")
    if chosen.single and workers != 1:
        raise UsageError(f"backend={backend!r} has one worker")
    return chosen
