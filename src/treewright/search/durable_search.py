"""A search that a program drives by itself: ask, evaluate, tell. Durable, resumable, repeatable.

With a journal, every outcome is on disk when `tell` returns, and one process owns the search at a
time (the lease). A task that has no outcome when the search is opened again is handed out again.
Without a journal the search lives in memory.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.executors.backends import ExecutorOptions
from treewright.kernel.procs.console import deferred_interrupts
from treewright.search import scores, search_journal
from treewright.search.evaluation_loop import (
    Callback,
    Evaluate,
    EvaluationLoop,
    choose_backend,
)
from treewright.search.history import History
from treewright.search.node import Node
from treewright.search.policies import Policy
from treewright.search.scores import Comparison, Score
from treewright.search.search_journal import (
    BudgetSet,
    Chosen,
    Failed,
    Line,
    Retried,
    Returned,
    SearchJournal,
    Settings,
    Told,
)
from treewright.search.sequencer import task_seed
from treewright.search.tasks import Task, TaskQueue
from treewright.search.tree import Branch


class Search:
    """A search, made by `open_search`. Threads may share it; processes may not.

    Example:
        >>> import treewright
        >>> with treewright.open_search(policy="random", budget=10) as search:
        ...     _ = search.run(lambda task: task.seed % 100, workers=2)
        >>> len(search.columns()["score"])
        10
    """

    def __init__(
        self,
        history: History,
        journal: SearchJournal | None,
        *,
        is_begun: bool,
        has_lookahead: bool,
    ) -> None:
        """Go on with a search.

        Args:
            history: The state of the search. Its tasks without an outcome are handed out first.
            journal: The journal; None for a search in memory.
            is_begun: Whether the settings are in the journal.
            has_lookahead: Whether the user chose the lookahead. Otherwise it becomes the number of
                workers of the first `run`.
        """
        self._history = history
        self._tasks = TaskQueue(branch.number for branch in history.pending())
        self._journal = journal
        self._is_begun = is_begun
        self._is_closed = False
        self._has_lookahead = has_lookahead
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
        line = search_journal.round_trip(
            Told(
                number=number,
                score=by_config if by_config is not None else value,
                data=data,
                expandable=expandable,
                prior=_checked_prior(prior),
                worker=worker,
            )
        )
        with self._changed:
            history = self._history
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
            self._history.check_pending(number)
            line = search_journal.round_trip(
                Failed(
                    number=number,
                    reason=_reason_text(reason),
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
            self._history.check_pending(number)
            if number not in self._tasks:
                return
            if isinstance(task, Task) and task.attempt != self._history.attempts.get(number, 1):
                return
            line = Returned(number=number, reason=_reason_text(reason))
            with deferred_interrupts():
                self._write(line, sync=False)
                self._tasks.give_back(number)
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
        chosen = choose_backend(workers, backend, cluster)
        loop = EvaluationLoop(self, self._ask_within, catch, callbacks, timeout)
        with self._changed, deferred_interrupts():
            self._begin(workers)
        work = evaluate if chosen.is_remote else self._tasks.marking_evaluations(evaluate)
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
        check_budget(evaluations)
        with self._changed:
            if evaluations != self.budget:
                line = BudgetSet(evaluations=evaluations)
                if self._is_begun:
                    self._write(line, sync=True)
                self._history.apply(line)
                self._changed.notify_all()

    def close(self) -> None:
        """Release the search for other processes. Tasks without an outcome are given back."""
        with self._changed:
            self._is_closed = True
            if self._journal is not None:
                self._journal.close()
                self._journal = None
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
    def settings(self) -> Settings:
        """The settings of the search; fixed once it has begun."""
        return self._history.settings

    @property
    def policy(self) -> Policy:
        """The policy with its settings."""
        return self._history.policy

    @property
    def budget(self) -> int | None:
        """The most evaluations; None is no limit. Changed by `set_budget`."""
        return self._history.budget

    @property
    def root(self) -> Node:
        """The node that the search starts from."""
        return self._history.root

    @property
    def is_over(self) -> bool:
        """Whether no task is under way and no further one will be chosen."""
        with self._changed:
            return self._history.is_over

    @property
    def nodes(self) -> list[Node]:
        """Every node with a score, in the order of choosing."""
        with self._changed:
            return self._history.scored

    @property
    def best(self) -> Node | None:
        """The best node so far, the older of equals; None before the first score."""
        with self._changed:
            return self._history.best

    @property
    def evaluations(self) -> int:
        """How many tasks have an outcome."""
        with self._changed:
            return self._history.evaluations

    @property
    def under_way(self) -> int:
        """How many tasks were chosen and have no outcome yet."""
        with self._changed:
            return self._history.sequencer.under_way

    @property
    def failures(self) -> dict[int, str]:
        """The reasons of failed tasks, by the numbers of the tasks."""
        with self._changed:
            return dict(self._history.failures)

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
            return self._history.columns()

    # -- inside ---------------------------------------------------------------------------

    def _ask_within(self, seconds_left: Callable[[], float]) -> Task | None:
        """Wait for a task. `seconds_left` is called again whenever the state has changed."""
        with self._changed:
            while (seconds := seconds_left()) > 0:
                task = self._next_task()
                if task is not None or self._history.is_over:
                    return task
                self._tasks.check_may_wait(self.settings.lookahead)
                self._changed.wait(min(seconds, threading.TIMEOUT_MAX))
            return None

    def _next_task(self) -> Task | None:
        """Return the next task; None if the policy waits for outcomes, or the search is over."""
        task: Task | None = None
        try:
            with deferred_interrupts():
                self._begin(1)  # does nothing once the search has begun
                task = self._hand_out_again() or self._hand_out_choice()
        except BaseException:
            if task is not None:  # an interrupt came before the caller got the task
                self._tasks.give_back(task.number)
                self._changed.notify_all()
            raise
        return task

    def _begin(self, workers: int) -> None:
        """Write the settings to the journal, if they are not there yet.

        Raises:
            UsageError: In fixed order there are more workers than the lookahead.
        """
        settings = self.settings
        if not self._is_begun:
            if not self._has_lookahead:
                settings = msgspec.structs.replace(settings, lookahead=workers)
                self._history = History(settings, self.budget)
            if self._journal is not None:
                self._journal.create(settings, self.budget)
            self._is_begun = True
        if settings.order == "fixed" and workers > settings.lookahead:
            raise UsageError(
                f"{workers} workers need a lookahead of as many, and this search has "
                f"{settings.lookahead}: use that many workers, or begin a search with a larger one"
            )

    def _hand_out_again(self) -> Task | None:
        """Return a task that was given back."""
        self._check_open()
        history = self._history
        while (number := self._tasks.next_returned()) is not None:
            if not history.has_outcome(number):  # an outcome may come after the task's return
                attempt = history.attempts.get(number, 1) + 1
                line = Retried(number=number, attempt=attempt)
                self._write(line, sync=False)
                history.apply(line)
                return self._hand_out(history.sequencer.tree.branches[number], attempt)
        return None

    def _hand_out_choice(self) -> Task | None:
        """Return the task of the policy's next choice."""
        history = self._history
        if history.is_spent:
            return None
        try:
            branch = history.sequencer.next()
        except ValueError as error:  # a plug-in made an impossible choice
            raise UsageError(str(error)) from error
        if branch is None:
            return None
        assert branch.parent is not None
        line = Chosen(
            number=branch.number,
            parent=branch.parent.number,
            seen=history.sequencer.seen,
            action=branch.action,
        )
        self._write(line, sync=False)
        return self._hand_out(branch, 1)

    def _hand_out(self, branch: Branch, attempt: int) -> Task:
        assert branch.parent is not None
        assert branch.parent.node is not None
        self._tasks.hand_out(branch.number)
        seed = task_seed(self.settings.seed, branch.number)
        return Task(branch.number, branch.parent.node, branch.action, seed, attempt)

    def _record_outcome(self, line: Told | Failed) -> None:
        with deferred_interrupts():
            self._write(line, sync=True)
            self._history.apply(line)
            self._tasks.finish(line.number)
            self._changed.notify_all()

    def _check_open(self) -> None:
        if self._is_closed:
            raise UsageError("this search is closed; open it again to go on")

    def _write(self, line: Line, *, sync: bool) -> None:
        """Write a line before it is applied: a task or an outcome is in the journal first."""
        self._check_open()
        if self._journal is not None:
            self._journal.append(line, sync=sync)


def _number(task: Task | int) -> int:
    if isinstance(task, Task):
        return task.number
    if type(task) is int:
        return task
    raise UsageError(f"a task is what ask() gave, or its number, not {task!r}")


def check_budget(evaluations: int | None) -> None:
    """Raise UsageError unless a budget is None or a whole number."""
    if evaluations is not None and (type(evaluations) is not int or evaluations < 0):
        raise UsageError(f"budget is a whole number, not negative: not {evaluations!r}")


def _checked_prior(value: float) -> float:
    """Return a prior as a float; raise UsageError if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UsageError(f"a prior is a finite number, not negative: not {value!r}")
    return float(value)


def _reason_text(reason: object) -> str:
    """Return a reason, also an exception, as a text that can be written to the journal."""
    if reason is None:
        return ""
    text = f"{type(reason).__name__}: {reason}" if isinstance(reason, Exception) else str(reason)
    return text.encode(errors="backslashreplace").decode()
