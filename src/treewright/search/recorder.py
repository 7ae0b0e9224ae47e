"""The recorder of a search: writes each line to the journal, then applies it to the history.

A task is handed out, and an outcome is reported, only after its line has been written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from treewright.kernel.errors import UsageError
from treewright.search import records
from treewright.search.branch import Branch
from treewright.search.history import History
from treewright.search.sequencer import task_seed
from treewright.search.tasks import Task, TaskQueue

if TYPE_CHECKING:
    from treewright.search.storage import Storage


class Recorder:
    """The state of a search and its journal. Not locked: `Search` calls it under its lock.

    Args:
        settings: The settings of the search.
        storage: The journal; None for a search in memory. Tasks that a journal has without an
            outcome are handed out first.
        budget: The largest number of evaluations; None is no limit.
        is_begun: Whether the settings are in the journal.
        has_lookahead: Whether the user chose the lookahead. Otherwise it becomes the number of
            workers of the first `begin`.
    """

    def __init__(
        self,
        settings: records.Settings,
        storage: Storage | None,
        *,
        budget: int | None,
        is_begun: bool,
        has_lookahead: bool,
    ) -> None:
        self.history = History(settings, budget)
        self.tasks = TaskQueue()
        self._storage = storage
        self._is_begun = is_begun
        self._is_closed = False
        self._has_lookahead = has_lookahead
        if storage is not None:
            self.history.apply_all(storage.take_lines())
            self.tasks = TaskQueue(branch.number for branch in self.history.pending())

    def begin(self, workers: int) -> None:
        """Write the settings to the journal, if they are not there yet.

        Raises:
            UsageError: In fixed order there are more workers than the lookahead.
        """
        settings = self.history.settings
        if not self._is_begun:
            if not self._has_lookahead:
                settings = msgspec.structs.replace(settings, lookahead=workers)
                self.history = History(settings, self.history.budget)
            if self._storage is not None:
                self._storage.create(settings, self.history.budget)
            self._is_begun = True
        if settings.order == "fixed" and workers > settings.lookahead:
            raise UsageError(
                f"{workers} workers need a lookahead of as many, and this search has "
                f"{settings.lookahead}: use that many workers, or begin a search with a larger one"
            )

    def next_task(self) -> Task | None:
        """Return a task that was given back, or the policy's next choice.

        None means that the policy waits for outcomes, or that the search is over.
        """
        self._check_open()
        history = self.history
        while (number := self.tasks.next_returned()) is not None:
            if history.has_outcome(number):
                continue  # the outcome came after the task was given back
            again = records.Retried(number=number, attempt=history.attempts.get(number, 1) + 1)
            self._write(again, sync=False)
            history.apply(again)
            return self._hand_out(history.sequencer.tree.branches[number], again.attempt)
        if history.is_spent:
            return None
        try:
            branch = history.sequencer.next()
        except ValueError as error:  # a plug-in made an impossible choice
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

    def record_outcome(self, line: records.Told | records.Failed) -> None:
        """Record the outcome of a task; it is on disk when this returns."""
        self._write(line, sync=True)
        self.history.apply(line)
        self.tasks.finish(line.number)

    def record_return(self, line: records.Returned) -> None:
        """Record that a task has no outcome, and queue it again."""
        self._write(line, sync=False)
        self.tasks.give_back(line.number)

    def set_budget(self, evaluations: int | None) -> None:
        """Record another limit on evaluations."""
        line = records.BudgetSet(evaluations=evaluations)
        if self._is_begun:
            self._write(line, sync=True)
        self.history.apply(line)

    def close(self) -> None:
        """Close the journal and release the lease."""
        self._is_closed = True
        if self._storage is not None:
            self._storage.close()
            self._storage = None

    def _hand_out(self, branch: Branch, attempt: int) -> Task:
        assert branch.parent is not None
        assert branch.parent.node is not None
        self.tasks.hand_out(branch.number)
        seed = task_seed(self.history.settings.seed, branch.number)
        return Task(branch.number, branch.parent.node, branch.action, seed, attempt)

    def _check_open(self) -> None:
        if self._is_closed:
            raise UsageError("this search is closed; open it again to go on")

    def _write(self, line: records.Line, *, sync: bool) -> None:
        self._check_open()
        if self._storage is not None:
            self._storage.append(line, sync=sync)
