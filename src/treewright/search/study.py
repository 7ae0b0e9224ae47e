"""A search that a program drives by itself: ask, evaluate, tell. Durable, resumable, repeatable.

`open_search` gives a `Search`. With a path, every outcome is on disk when `tell` returns, one
process owns the search at a time (the lease), and opening it again continues it: tasks without an
outcome are handed out again, tasks with an outcome are not. Without a path it lives in memory.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from treewright.kernel.errors import UsageError, require_several
from treewright.kernel.executors.backends import ExecutorOptions
from treewright.kernel.procs import interrupts
from treewright.kernel.storage.lease import DEFAULT_STALE_SECONDS
from treewright.search import arguments, records, scores
from treewright.search.node import Node
from treewright.search.policies import Policy
from treewright.search.recorder import Recorder
from treewright.search.scores import Comparison, Direction, Gate, Score
from treewright.search.sequencer import Order
from treewright.search.tasks import Task

if TYPE_CHECKING:
    from treewright.search.evaluation_loop import Callback, Evaluate, EvaluationLoop


def open_search(
    path: str | Path | None = None,
    *,
    policy: str | Policy | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int | None = None,
    budget: int | None = None,
    order: Order | None = None,
    lookahead: int | None = None,
    branching: int | None = None,
    actions: Iterable[str] | None = None,
    direction: Direction | None = None,
    gate: Gate | None = None,
    root: Any = None,
    root_score: Score | None = None,
    stale_seconds: float = DEFAULT_STALE_SECONDS,
    force: bool = False,
) -> Search:
    """Begin a search, or continue the one at `path`.

    All arguments but `path`, `budget`, `stale_seconds` and `force` are fixed when the search
    begins. When it is opened again they can be left out; a different value is an error.

    Args:
        path: The directory of the search. Without one the search lives in memory.
        policy: How the next node to grow is chosen: a name, or a `Policy`. Default `ab-mcts`.
        options: Settings of a policy that is given by its name.
        seed: The seed of the policy and of the tasks. Default 0.
        budget: The most evaluations; it may be changed whenever the search is opened.
        order: `fixed` (the default) grows the same tree whatever the timing of evaluations;
            `live` uses every outcome at once, and cannot be repeated.
        lookahead: How many tasks may be under way at once in fixed order. Default: the number of
            workers of the first `run`.
        branching: The most children of a node. Default: the policy's own limit.
        actions: The names of different ways to grow a child.
        direction: `maximize` (the default) or `minimize`.
        gate: With `parent`, only a node that is better than its parent gets children.
        root: Data of the root, as JSON.
        root_score: The score of the root.
        stale_seconds: The age at which the lease of another process counts as abandoned.
        force: Take the search over from a process that still owns it.

    Returns:
        The search. Close it, or use it in a `with` block.

    Raises:
        UsageError: An argument has a wrong value, or differs from the one the search began with.
        LockActive: Another process owns the search.
        StorageError: The directory cannot be read or written.

    Example:
        >>> with open_search(policy="best-first", budget=20, seed=1) as search:
        ...     while (task := search.ask()) is not None:
        ...         depth = task.parent.depth
        ...         node = search.tell(task, score=depth + task.seed % 10, data={"depth": depth})
        >>> search.evaluations
        20
    """
    require_several(actions=actions)
    given = {
        "policy": arguments.policy_name(policy),
        "options": arguments.policy_options(policy, options),
        "seed": seed,
        "order": order,
        "lookahead": lookahead,
        "branching": branching,
        "actions": tuple(actions) if actions is not None else None,
        "direction": direction,
        "gate": gate,
        "root_data": arguments.round_trip_data(root),
        "root_score": arguments.plain_score(root_score),
    }
    given = {name: value for name, value in given.items() if value is not None}
    arguments.check_budget(budget)
    storage = None
    if path is not None:
        from treewright.search.storage import Storage

        storage = Storage.open(Path(path), stale_seconds=stale_seconds, force=force)
    try:
        recorded = storage.settings if storage is not None else None
        if recorded is not None:
            arguments.check_same_settings(recorded, given)
        search = Search(
            Recorder(
                recorded or arguments.new_settings(given),
                storage,
                budget=budget,
                is_begun=recorded is not None,
                has_lookahead=lookahead is not None,
            )
        )
        if recorded is not None and budget is not None:
            search.set_budget(budget)
        return search
    except BaseException:
        if storage is not None:
            storage.close()
        raise


class Search:
    """A search, made by `open_search`. Threads may share it; processes may not.

    Example:
        >>> with open_search(policy="random", budget=10) as search:
        ...     _ = search.run(lambda task: task.seed % 100, workers=2)
        >>> len(search.columns()["score"])
        10
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._loops: list[EvaluationLoop] = []
        self._changed = threading.Condition(threading.RLock())
        """The lock of the search; notified after every change."""

    # -- ask, tell, fail, release ---------------------------------------------------------

    def ask(self, *, wait: bool = True) -> Task | None:
        """Return the next task; None when the search is over.

        Args:
            wait: Wait while the next choice needs outcomes of tasks under way, until other threads
                tell them. If false, None is returned then too; `is_over` tells the two cases apart.

        Raises:
            UsageError: The search is closed, or the wait would never end.
        """
        if wait:
            return self._ask_within(lambda: math.inf)
        with self._changed:
            return self._next_task()

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
        """Record the score of a task. It is on disk when this returns.

        To tell the same outcome again changes nothing.

        Args:
            task: The task, or its number.
            score: A number, or numbers by config.
            data: A JSON value that is recorded with the node.
            expandable: Whether the node may get children.
            prior: The weight of the node for policies that use priors.
            worker: The name of the worker, for the record.

        Returns:
            The node of the task.

        Raises:
            UsageError: The task has a different outcome, or an argument has a wrong value.
        """
        number = _number(task)
        value, by_config = scores.check(score)
        line = arguments.round_trip(
            records.Told(
                number=number,
                score=by_config if by_config is not None else value,
                data=data,
                expandable=expandable,
                prior=arguments.checked_prior(prior),
                worker=worker,
            )
        )
        with self._changed:
            history = self._recorder.history
            known = history.nodes.get(number)
            if known is not None and (known.score, known.scores, known.data) == (
                value,
                by_config,
                line.data,
            ):
                return known
            history.check_pending(number)
            history.check_configs(by_config)
            self._record_outcome(line)
            return history.nodes[number]

    def fail(
        self,
        task: Task | int,
        reason: str | Exception,
        *,
        exhausts_parent: bool = False,
        worker: str | None = None,
    ) -> None:
        """Record that a task has no score and never will have one. The policy learns from it.

        Args:
            task: The task, or its number.
            reason: The reason, for people.
            exhausts_parent: Whether the parent gets no further tasks.
            worker: The name of the worker, for the record.

        Raises:
            UsageError: The task has an outcome already.
        """
        number = _number(task)
        with self._changed:
            self._recorder.history.check_pending(number)
            line = arguments.round_trip(
                records.Failed(
                    number=number,
                    reason=arguments.reason_text(reason),
                    exhausts_parent=exhausts_parent,
                    worker=worker,
                )
            )
            self._record_outcome(line)

    def release(self, task: Task | int, reason: str | Exception = "") -> None:
        """Give a task back after a fault, such as a lost worker. The policy learns nothing.

        The task is handed out again. Nothing happens if it was given back already, or if it has
        been handed out again since.
        """
        number = _number(task)
        with self._changed:
            history = self._recorder.history
            history.check_pending(number)
            now = history.attempts.get(number, 1)
            if number not in self._recorder.tasks or (
                isinstance(task, Task) and task.attempt != now
            ):
                return
            line = records.Returned(number=number, reason=arguments.reason_text(reason))
            with interrupts.deferred():
                self._recorder.record_return(line)
                self._changed.notify_all()

    # -- run, stop, close -----------------------------------------------------------------

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
        """Ask, evaluate and tell until the search is over.

        Args:
            evaluate: Returns the score, or a `Result`, of a task. `EvaluationFailed` means that the
                task failed; any other exception stops the search and leaves the task untried.
            workers: How many evaluations run at once.
            backend: `inline`, `threads`, `dask`, or the name of a plug-in. Default: `inline` for
                one worker, `threads` for several, `dask` if there is a cluster.
            cluster: The address of a running cluster.
            catch: Further exceptions that mean that the task failed.
            timeout: Seconds after which no task is begun. Tasks under way are finished.
            callbacks: Functions that are called with the search and a `Finished` after every
                outcome, one at a time.

        Returns:
            The search itself.

        Raises:
            UsageError: An argument has a wrong value.
        """
        from treewright.search.evaluation_loop import EvaluationLoop, choose_backend

        arguments.check_workers(workers)
        arguments.check_timeout(timeout)
        called = arguments.checked_callbacks(callbacks)
        chosen = choose_backend(workers, backend, cluster)
        with self._changed, interrupts.deferred():
            self._recorder.begin(workers)
        failures = catch if isinstance(catch, tuple) else (catch,)
        tasks = self._recorder.tasks
        work = evaluate if chosen.is_remote else tasks.marking_evaluations(evaluate)
        loop = EvaluationLoop(self, self._ask_within, failures, called, timeout)
        with self._changed:
            self._loops.append(loop)
        try:
            loop.run(work, chosen, ExecutorOptions(workers, cluster))
        finally:
            with self._changed:
                self._loops.remove(loop)
        return self

    def stop(self) -> None:
        """End every `run` of this search, from a callback or another thread.

        No further task is begun, tasks under way are finished, and `run` returns. It can be called
        again to go on.

        Raises:
            UsageError: There is no `run` to end.
        """
        with self._changed:
            if not self._loops:
                raise UsageError("stop() ends a run() that is going on, and none is")
            for loop in self._loops:
                loop.stop()
            self._changed.notify_all()

    def set_budget(self, evaluations: int | None) -> None:
        """Set another limit on evaluations; None is no limit."""
        arguments.check_budget(evaluations)
        with self._changed:
            if evaluations != self.budget:
                self._recorder.set_budget(evaluations)
                self._changed.notify_all()

    def close(self) -> None:
        """Release the search for other processes. Tasks without an outcome are given back."""
        with self._changed:
            self._recorder.close()
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

    # -- state ----------------------------------------------------------------------------

    @property
    def settings(self) -> records.Settings:
        """The settings of the search; fixed once it has begun."""
        return self._recorder.history.settings

    @property
    def policy(self) -> Policy:
        """The policy with its settings."""
        return self._recorder.history.policy

    @property
    def budget(self) -> int | None:
        """The most evaluations; None is no limit. Changed by `set_budget`."""
        return self._recorder.history.budget

    @property
    def root(self) -> Node:
        """The node that the search starts from."""
        return self._recorder.history.root

    @property
    def is_over(self) -> bool:
        """Whether no task is under way and no further one will be chosen."""
        with self._changed:
            return self._recorder.history.is_over

    @property
    def nodes(self) -> list[Node]:
        """Every node with a score, in the order of choosing."""
        with self._changed:
            return self._recorder.history.scored

    @property
    def best(self) -> Node | None:
        """The best node so far, the older of equals; None before the first score."""
        with self._changed:
            return self._recorder.history.best

    @property
    def evaluations(self) -> int:
        """How many tasks have an outcome."""
        with self._changed:
            return self._recorder.history.evaluations

    @property
    def under_way(self) -> int:
        """How many tasks were chosen and have no outcome yet."""
        with self._changed:
            return self._recorder.history.sequencer.under_way

    @property
    def failures(self) -> dict[int, str]:
        """The reasons of failed tasks, by the numbers of the tasks."""
        with self._changed:
            return dict(self._recorder.history.failures)

    def compare(self, node: Node, other: Node) -> Comparison:
        """Return how much better `node` is than `other`, pair by pair if scores are by config."""
        return scores.compare(node, other, self.settings.direction)

    def columns(self) -> dict[str, list[Any]]:
        """Return every task as a row of a table by columns, for `pandas.DataFrame` and others.

        Rows are in the order of choosing. The column `state` has `complete`, `failed` or
        `under way`; `attempts` counts how often the task was handed out. Scores by config have a
        column `score[config]` each, in addition to their mean.
        """
        with self._changed:
            return self._recorder.history.columns()

    # -- inside ---------------------------------------------------------------------------

    def _ask_within(self, seconds_left: Callable[[], float]) -> Task | None:
        """Wait for a task. `seconds_left` is called again whenever the state has changed."""
        with self._changed:
            while (seconds := seconds_left()) > 0:
                task = self._next_task()
                if task is not None or self._recorder.history.is_over:
                    return task
                self._recorder.tasks.check_may_wait(self.settings.lookahead)
                self._changed.wait(min(seconds, threading.TIMEOUT_MAX))
            return None

    def _next_task(self) -> Task | None:
        task: Task | None = None
        try:
            with interrupts.deferred():
                self._recorder.begin(1)  # does nothing once the search has begun
                task = self._recorder.next_task()
        except BaseException:
            if task is not None:  # an interrupt came before the caller got the task
                self._recorder.tasks.give_back(task.number)
                self._changed.notify_all()
            raise
        return task

    def _record_outcome(self, line: records.Told | records.Failed) -> None:
        with interrupts.deferred():
            self._recorder.record_outcome(line)
            self._changed.notify_all()


def _number(task: Task | int) -> int:
    if isinstance(task, Task):
        return task.number
    if type(task) is int:
        return task
    raise UsageError(f"a task is what ask() gave, or its number, not {task!r}")
