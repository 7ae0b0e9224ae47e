"""Getting evaluations to an outcome: order, fairness, who runs alone, when to stop.

Knows executors and events, nothing of how an evaluation works or which comes next. Which
worker does what, and in which order outcomes arrive, changes nothing that is decided later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from treewright.kernel.errors import TreewrightError
from treewright.kernel.executors.base import Done, Executor
from treewright.kernel.procs import proctree
from treewright.tree.evaluating.heldout import HeldoutOutcome, HeldoutRequest
from treewright.tree.evaluating.work import Outcome, Request, Work
from treewright.tree.records import events as ev
from treewright.tree.records.model import EvalOutcome, Evaluation
from treewright.tree.records.store import RunStore
from treewright.tree.run import faults
from treewright.tree.run.assigning import Assigner
from treewright.tree.run.failure_rules import FailureRules
from treewright.tree.run.faults import Paused
from treewright.tree.run.queueing import Queue
from treewright.tree.run.settling import Settling

EvalExecutor = Executor[Request, Outcome]
ExecutorFactory = Callable[[Work], EvalExecutor]
"""Makes an executor for a way of working."""

_CANCEL_TICK_SECONDS = 0.2
_PAUSE_TICK = 0.3
_PREPARING_TICK_SECONDS = 0.02


class StrictFailure(TreewrightError):
    """An evaluation failed and the run was told to stop at that."""


@dataclass(slots=True)
class Dispatcher:
    """Runs evaluations and held-out sweeps until there are no more."""

    store: RunStore
    executor: EvalExecutor
    assigner: Assigner
    cancel: threading.Event
    failure_rules: FailureRules = field(default_factory=FailureRules)
    _queue: Queue = field(init=False)
    _settling: Settling = field(init=False)
    _suspects: set[str] = field(default_factory=set)
    _in_flight: int = 0
    _slots: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._queue = Queue(lambda eval_id: self._evaluation(eval_id).parent_node_id)
        self._settling = Settling(
            self.store,
            self.executor,
            self.assigner,
            self.cancel,
            self.failure_rules,
            self._queue,
        )

    def _evaluation(self, eval_id: str) -> Evaluation:
        return self.store.manifest.evaluations[eval_id]

    def run(self, eval_ids: Iterable[str] = (), to_measure: Iterable[str] = ()) -> None:
        """Returns when everything has an outcome; raises when told to stop before that."""
        for eval_id in eval_ids:
            if faults.is_suspect(self._evaluation(eval_id)):
                self._queue.alone.append(eval_id)
            else:
                self._queue.add(eval_id)
        self._queue.to_measure.extend(to_measure)
        failed = pause = None
        while True:
            word = self.assigner.word()
            told = self.cancel.is_set() or failed is not None or word == "end"
            stopping = told or self._settling.is_outage
            if not stopping and word == "go":
                self._dispatch()
            is_done = word == "go" and not self._is_work_left()
            if not self._in_flight and (stopping or is_done):
                if not self._settling.has_held:
                    break
                pause = self._settling.held(goes_on=not told)
                if told or pause is not None:
                    break
                continue
            done = self.executor.next_done(self._patience() if word != "wait" else _PAUSE_TICK)
            if done is not None:
                self._in_flight -= 1
                failed = self._settle(done) or failed
        if self.cancel.is_set():
            raise KeyboardInterrupt
        if pause is not None:
            raise Paused(pause)
        if (why := self._settling.why_unmeasured()) is not None:
            raise Paused(why)
        if failed is not None:
            raise StrictFailure(failed)
        if word == "end":
            raise faults.Halted

    def _is_work_left(self) -> bool:
        return not self._queue.is_empty or self.assigner.is_preparing()

    def _dispatch(self) -> None:
        self._queue.take_due()
        if self._suspects:  # one of them runs, and alone
            return
        self._start_waiting()
        while more := self.assigner.more(self._room()):
            for eval_id in more:
                self._queue.add(eval_id)
            self._start_waiting()
        idle = not (self._in_flight or self._queue.has_company)
        if self._queue.alone and idle and not self.assigner.is_preparing():
            # With it a coordinator died: should that happen again, nobody else is suspected.
            self._start(self._queue.alone.popleft())

    def _room(self) -> int:
        """Workers for which there is nothing, not even something that has to wait for them."""
        return self.executor.capacity - self._in_flight - len(self._queue)

    def _start_waiting(self) -> None:
        """Held-out sweeps first: with them something that was begun is done."""
        to_measure, most = self._queue.to_measure, self.failure_rules.max_per_node
        while to_measure and self._in_flight < self.executor.capacity:
            self._start_measuring(to_measure.popleft())
        while self._in_flight < self.executor.capacity:
            eval_id = self._queue.next(most) if self.assigner.may_start() else None
            if eval_id is None:
                break
            self._start(eval_id)

    def _start(self, eval_id: str) -> None:
        evaluation = self._evaluation(eval_id)
        attempt = evaluation.attempt + 1
        request = self.assigner.request(evaluation, attempt)
        boot_id = proctree.boot_id()
        self.store.record(ev.Started(eval_id=eval_id, attempt=attempt, boot_id=boot_id))
        self._queue.began(eval_id)
        if faults.is_suspect(evaluation):
            self._suspects.add(eval_id)
        self._submit(request)

    def _start_measuring(self, eval_id: str) -> None:
        evaluation = self._evaluation(eval_id)
        tries = self._settling.failed_measurements(eval_id)
        self._submit(self.assigner.heldout_request(evaluation, evaluation.attempt + tries))

    def _submit(self, request: Request) -> None:
        """Each place for an evaluation has a number, the lowest that is free."""
        self._in_flight += 1
        slot = min(set(range(len(self._slots) + 1)) - self._slots)
        self._slots.add(slot)
        self.executor.submit(msgspec.structs.replace(request, slot=slot))

    def _patience(self) -> float | None:
        """How long to wait for a completion before something else may be due.

        Without anything under way nothing but the clock ends the wait, so it is short
        enough to notice a cancellation."""
        if self.cancel.is_set():
            return None
        if self.assigner.is_preparing():
            return _PREPARING_TICK_SECONDS
        left = self._queue.seconds_to_next()
        if left is None:
            return None
        return left if self._in_flight else min(left, _CANCEL_TICK_SECONDS)

    def _settle(self, done: Done[Request, Outcome]) -> str | None:
        """Records an outcome or a retry; returns what is wrong if the run must stop at it."""
        request, outcome = done.request, done.outcome
        if request.slot is not None:
            self._slots.discard(request.slot)
        if isinstance(request, HeldoutRequest):
            assert outcome is None or isinstance(outcome, HeldoutOutcome)
            self._settling.measured(request.eval_id, outcome, done.error)
            return None
        self._queue.ended(request.eval_id)
        self._suspects.discard(request.eval_id)
        assert outcome is None or isinstance(outcome, EvalOutcome)
        failed = self._settling.evaluated(request, outcome, done)
        self.assigner.over(request.eval_id)
        return failed
