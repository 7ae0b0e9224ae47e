"""A search that anybody can drive: ask, evaluate, tell; durable, resumable, repeatable.

`open_search` gives a `Search`. With a path, every outcome is on disk when `tell` returns, one
process owns the search at a time (the lease), and opening it again continues it: choices that
had no outcome are handed out again, nothing that was told is asked twice. Without a path it
lives in memory. Threads may share one `Search`.
"""

from __future__ import annotations

import heapq
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from treewright.kernel import interrupts
from treewright.kernel.errors import UsageError
from treewright.search import given, records, scores
from treewright.search.history import History
from treewright.search.policies import Policy
from treewright.search.scores import Comparison, Score
from treewright.search.sequencer import task_seed
from treewright.search.tree import Branch, Node

if TYPE_CHECKING:
    from treewright.search.running import Evaluate
    from treewright.search.storage import Storage


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


class Search:
    """Made by `open_search`."""

    def __init__(
        self,
        settings: records.Settings,
        storage: Storage | None,
        *,
        budget: int | None,
        is_begun: bool,
        lookahead_given: bool,
    ) -> None:
        self._history = History(settings, budget)
        self._storage = storage
        self._is_begun = is_begun
        self._is_closed = False
        self._lookahead_given = lookahead_given
        self._changed = threading.Condition(threading.RLock())
        self._queue: list[int] = []
        self._holders: dict[int, int] = {}
        if storage is not None:
            self._history.apply_all(storage.take_lines())
            self._queue = [branch.number for branch in self._history.pending()]

    # -- the three words ------------------------------------------------------------------

    def ask(self, *, wait: bool = True) -> Task | None:
        """The next task; None when the search is over.

        Where the next choice needs outcomes that are under way, `ask` waits for other threads
        to tell them. With `wait=False` it returns None then as well; `is_over` tells the two apart.
        """
        with self._changed:
            while True:
                task = self._hand_out_next()
                if task is not None or not wait or self._history.is_over:
                    return task
                self._wait_for_others()

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
            known = self._history.nodes.get(number)
            if known is not None and (known.score, known.scores, known.data) == (
                value,
                by_config,
                line.data,
            ):
                return known
            self._history.check_pending(number)
            self._history.check_configs(by_config)
            with interrupts.deferred():
                self._write(line, sync=True)
                self._history.apply(line)
                self._settled(number)
            return self._history.nodes[number]

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
            self._history.check_pending(number)
            line = given.as_read(
                records.Failed(
                    number=number,
                    reason=given.in_words(reason),
                    exhausts_parent=exhausts_parent,
                    worker=worker,
                )
            )
            with interrupts.deferred():
                self._write(line, sync=True)
                self._history.apply(line)
                self._settled(number)

    def release(self, task: Task | int, reason: str | Exception = "") -> None:
        """A fault: the task goes back and is handed out again; nothing is learned from it.

        One that went back already, or that somebody else has by now, is left alone.
        """
        number = _number(task)
        with self._changed:
            self._history.check_pending(number)
            now = self._history.attempts.get(number, 1)
            if number not in self._holders or (isinstance(task, Task) and task.attempt != now):
                return
            line = records.Returned(number=number, reason=given.in_words(reason))
            with interrupts.deferred():
                self._write(line, sync=False)
                self._put_back(number)

    def run(
        self,
        evaluate: Evaluate,
        *,
        workers: int = 1,
        backend: str | None = None,
        cluster: str | None = None,
        catch: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> Self:
        """Asks, evaluates and tells until the search is over, `workers` at a time.

        `evaluate(task)` returns a score or a `Result`. `backend` is `inline`, `threads`, `dask`
        (at `cluster`, or on this machine) or a plug-in's name. An exception stops the search and
        leaves its task untried, except those of `catch`, which are failures of the task.
        """
        from treewright.search.running import backend_of, run

        given.workers(workers)
        chosen = backend_of(workers, backend, cluster)  # before anything is settled by beginning
        with self._changed, interrupts.deferred():
            self._begin(workers)
        caught = catch if isinstance(catch, tuple) else (catch,)
        run(self, evaluate, workers, chosen, cluster, caught)
        return self

    def set_budget(self, evaluations: int | None) -> None:
        """Another limit on evaluations from now on; None is no limit."""
        given.budget(evaluations)
        with self._changed:
            if evaluations != self.budget:
                line = records.BudgetSet(evaluations=evaluations)
                if self._is_begun:
                    self._write(line, sync=True)
                self._history.apply(line)
                self._changed.notify_all()

    # -- looking --------------------------------------------------------------------------

    @property
    def settings(self) -> records.Settings:
        """What the choices depend on; fixed once the search has begun."""
        return self._history.settings

    @property
    def policy(self) -> Policy:
        return self._history.policy

    @property
    def budget(self) -> int | None:
        """The most evaluations; None is no limit. Changed by `set_budget`, which records it."""
        return self._history.budget

    @property
    def root(self) -> Node:
        return self._history.root

    @property
    def is_over(self) -> bool:
        """Whether nothing is under way and nothing will be chosen."""
        with self._changed:
            return self._history.is_over

    @property
    def nodes(self) -> list[Node]:
        """Every node with a score, in the order of choosing; the root first if it has one."""
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
        """How many tasks were asked for and have no outcome."""
        with self._changed:
            return self._history.sequencer.under_way

    @property
    def failures(self) -> dict[int, str]:
        """Why tasks failed, by their numbers."""
        with self._changed:
            return dict(self._history.failures)

    def compare(self, node: Node, other: Node) -> Comparison:
        """How much better `node` is than `other`: pair by pair where scores are by config."""
        return scores.compare(node, other, self.settings.direction)

    # -- ending ---------------------------------------------------------------------------

    def close(self) -> None:
        """Gives the search up for the next process. What was asked and not told goes back."""
        with self._changed:
            self._is_closed = True
            if self._storage is not None:
                self._storage.close()
                self._storage = None
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

    def _begin(self, workers: int) -> None:
        """Writes the settings down; how far to look ahead is settled by the first to begin."""
        settings = self.settings
        if not self._is_begun:
            if not self._lookahead_given:
                settings = msgspec.structs.replace(settings, lookahead=workers)
                self._history = History(settings, self.budget)
            if self._storage is not None:
                self._storage.create(settings, self.budget)
            self._is_begun = True
        if settings.order == "fixed" and workers > settings.lookahead:
            raise UsageError(
                f"{workers} workers need a lookahead of as many, and this search has "
                f"{settings.lookahead}: use that many workers, or begin a search with a larger one"
            )

    def _hand_out_next(self) -> Task | None:
        task: Task | None = None
        try:
            with interrupts.deferred():
                self._begin(1)
                self._check_open()
                task = self._next_task()
        except BaseException:
            if task is not None:  # interrupted: nobody gets it
                self._put_back(task.number)
            raise
        return task

    def _wait_for_others(self) -> None:
        me = threading.get_ident()
        if all(holder == me for holder in self._holders.values()):
            raise UsageError(
                "ask() would wait for ever: the next choice needs an outcome that only this thread "
                "can tell; tell or release what was asked first, begin the search with a larger "
                f"lookahead than {self.settings.lookahead}, or use ask(wait=False) where other "
                "threads tell"
            )
        self._changed.wait()

    def _put_back(self, number: int) -> None:
        self._holders.pop(number, None)
        heapq.heappush(self._queue, number)
        self._changed.notify_all()

    def _next_task(self) -> Task | None:
        history = self._history
        while self._queue:
            number = heapq.heappop(self._queue)
            if history.has_outcome(number):
                continue  # given up, and told all the same
            again = records.Retried(number=number, attempt=history.attempts.get(number, 1) + 1)
            self._write(again, sync=False)
            history.apply(again)
            return self._hand_out(history.sequencer.tree.branches[number], again.attempt)
        if history.is_spent:
            return None
        try:
            branch = history.sequencer.next()
        except ValueError as error:  # of a plug-in
            raise UsageError(str(error)) from error
        if branch is None:
            return None
        assert branch.parent is not None
        line = records.Chosen(
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
        self._holders[branch.number] = threading.get_ident()
        seed = task_seed(self.settings.seed, branch.number)
        return Task(branch.number, branch.parent.node, branch.action, seed, attempt)

    def _settled(self, number: int) -> None:
        self._holders.pop(number, None)
        self._changed.notify_all()

    def _check_open(self) -> None:
        if self._is_closed:
            raise UsageError("this search is closed; open it again to go on")

    def _write(self, line: records.Line, *, sync: bool) -> None:
        self._check_open()
        if self._storage is not None:
            self._storage.append(line, sync=sync)


def _number(task: Task | int) -> int:
    if isinstance(task, Task):
        return task.number
    if type(task) is int:
        return task
    raise UsageError(f"a task is what ask() gave, or its number, not {task!r}")
