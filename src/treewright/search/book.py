"""The book of a search: what is written down, and what is handed out by it.

A line is written before it is true, and true before anybody is told. Nothing here is locked: a
`Search` uses it under its own lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from treewright.kernel.errors import UsageError
from treewright.search import records
from treewright.search.history import History
from treewright.search.sequencer import task_seed
from treewright.search.tasks import Task, Tasks
from treewright.search.tree import Branch

if TYPE_CHECKING:
    from treewright.search.storage import Storage


class Book:
    """In memory if there is no storage. Choices without an outcome are handed out again first."""

    def __init__(
        self,
        settings: records.Settings,
        storage: Storage | None,
        *,
        budget: int | None,
        is_begun: bool,
        lookahead_given: bool,
    ) -> None:
        self.history = History(settings, budget)
        self.tasks = Tasks()
        self._storage = storage
        self._is_begun = is_begun
        self._is_closed = False
        self._lookahead_given = lookahead_given
        if storage is not None:
            self.history.apply_all(storage.take_lines())
            self.tasks = Tasks(branch.number for branch in self.history.pending())

    def begin(self, workers: int) -> None:
        """Writes the settings down; how far to look ahead is settled by the first to begin."""
        settings = self.history.settings
        if not self._is_begun:
            if not self._lookahead_given:
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
        """One that came back, or the policy's next choice; None if it must wait, or is over."""
        self._check_open()
        history = self.history
        while (number := self.tasks.next_returned()) is not None:
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
        self.tasks.hand_out(branch.number)
        seed = task_seed(self.history.settings.seed, branch.number)
        return Task(branch.number, branch.parent.node, branch.action, seed, attempt)

    def settle(self, line: records.Told | records.Failed) -> None:
        """The outcome of a task, durable when this returns."""
        self._write(line, sync=True)
        self.history.apply(line)
        self.tasks.settle(line.number)

    def take_back(self, line: records.Returned) -> None:
        self._write(line, sync=False)
        self.tasks.put_back(line.number)

    def set_budget(self, evaluations: int | None) -> None:
        line = records.BudgetSet(evaluations=evaluations)
        if self._is_begun:
            self._write(line, sync=True)
        self.history.apply(line)

    def close(self) -> None:
        self._is_closed = True
        if self._storage is not None:
            self._storage.close()
            self._storage = None

    def _check_open(self) -> None:
        if self._is_closed:
            raise UsageError("this search is closed; open it again to go on")

    def _write(self, line: records.Line, *, sync: bool) -> None:
        self._check_open()
        if self._storage is not None:
            self._storage.append(line, sync=sync)
