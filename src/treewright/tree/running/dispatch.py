"""Getting evaluations to an outcome: order, fairness, retries, outages.

Knows executors and events, nothing of how an evaluation works or which comes next. Which
worker does what, and in which order outcomes arrive, changes nothing that is decided later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from treewright.kernel.errors import LeaseLost, StorageError, TreewrightError, UsageError
from treewright.kernel.executors.base import Done, Executor, Worker
from treewright.tree.deciding.caps import CAP_REACHED
from treewright.tree.deciding.kept_files import DECIDING_FILE_CHANGED
from treewright.tree.evaluating.heldout import HeldoutOutcome, HeldoutRequest
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.evaluating.work import EvaluationLost, Outcome, Request, Work
from treewright.tree.records import events as ev
from treewright.tree.records import layout, usage_log
from treewright.tree.records.model import UNSET, EvalError, EvalOutcome, Evaluation
from treewright.tree.records.store import RunStore
from treewright.tree.running import faults
from treewright.tree.running.assigning import Assigner
from treewright.tree.running.failure_rules import FORGIVEN, TIMES_FORGIVEN, FailureRules
from treewright.tree.running.faults import (
    MOST_PAUSES,
    OF_THE_SWEEP,
    OUTAGES,
    UNCLEAR,
    Paused,
)
from treewright.tree.running.queueing import Queue

EvalExecutor = Executor[Request, Outcome]
ExecutorFactory = Callable[[Work], EvalExecutor]
"""Makes an executor for a way of working."""

_STOPPING = (StorageError, LeaseLost, UsageError)
"""What says nothing about the candidate and would say the same of the next one."""
_CANCEL_TICK_SECONDS = 0.2
_PAUSE_TICK = 0.3
_PREPARING_TICK_SECONDS = 0.02
_OUTAGES_THAT_ARE_ENOUGH = 2
"""After so many in a row, each on every worker, the next one would fail as they did."""


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
    _held: dict[str, tuple[EvalRequest, EvalOutcome, Worker | None]] = field(default_factory=dict)
    _unmeasured: dict[str, str] = field(default_factory=dict)
    _outages: int = 0
    _queue: Queue = field(init=False)
    _suspects: set[str] = field(default_factory=set)
    _failures: dict[tuple[str, str], int] = field(default_factory=dict)
    _in_flight: int = 0
    _slots: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._queue = Queue(lambda eval_id: self._evaluation(eval_id).parent_node_id)

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
            stopping = self.cancel.is_set() or failed is not None or self._is_outage()
            stopping = stopping or word == "end"
            if not stopping and word == "go":
                self._dispatch()
            is_done = word == "go" and not self._is_work_left()
            if not self._in_flight and (stopping or is_done):
                if not self._held:
                    break
                pause = self._settle_held()
                if stopping or pause is not None:
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
        if self._unmeasured:
            raise Paused(faults.explain_unmeasured(self.assigner.where(), self._unmeasured))
        if failed is not None:
            raise StrictFailure(failed)
        if word == "end":
            raise faults.Halted

    def _is_work_left(self) -> bool:
        return not self._queue.is_empty or self.assigner.is_preparing()

    def _is_outage(self) -> bool:
        enough = self._outages >= _OUTAGES_THAT_ARE_ENOUGH * self.executor.capacity
        return enough or bool(self._unmeasured)

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
        self.store.record(ev.Started(eval_id=eval_id, attempt=attempt))
        self._queue.began(eval_id)
        if faults.is_suspect(evaluation):
            self._suspects.add(eval_id)
        self._submit(request)

    def _start_measuring(self, eval_id: str) -> None:
        evaluation = self._evaluation(eval_id)
        tries = sum(n for (name, _), n in self._failures.items() if name == _measuring(eval_id))
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
            self._settle_measured(request.eval_id, outcome, done.error)
            return None
        self._queue.ended(request.eval_id)
        self._suspects.discard(request.eval_id)
        assert outcome is None or isinstance(outcome, EvalOutcome)
        failed = self._settle_evaluated(request, outcome, done)
        self.assigner.over(request.eval_id)
        return failed

    def _settle_evaluated(
        self, request: EvalRequest, outcome: EvalOutcome | None, done: Done[Request, Outcome]
    ) -> str | None:
        eval_id = request.eval_id
        if isinstance(done.error, _STOPPING) or faults.is_full_disk(done.error):
            raise done.error
        outcome = outcome or self._fault(request, done.error)
        error = outcome.error
        if error is not None and self.cancel.is_set():
            # What ran may have been hit by the same Ctrl-C: a failure then is not an answer.
            self._requeue(request, "interrupted", outcome)
            return None
        if error is not None and error.code == CAP_REACHED:
            self._requeue(request, CAP_REACHED, outcome)
            self.assigner.fell_short(eval_id)
            self._queue.add(eval_id)
            return None
        if error is not None:
            failures = self._failed_again(eval_id, error.code)
            if failures <= self._retries_for(error):
                self._requeue(request, error.code, outcome)
                self._queue.delay(eval_id, self.failure_rules.backoff(failures))
                return None
        if isinstance(done.error, TreewrightError):
            raise done.error
        if error is not None and self._may_be_outage(error):
            self._outages += error.code in OUTAGES or error.code in OF_THE_SWEEP
            self._held[eval_id] = (request, outcome, done.worker)
            self.assigner.held(eval_id, outcome)
            return self._strictly(eval_id, error)
        self._outages = 0
        self._record(request, outcome, done.worker)
        return self._strictly(eval_id, error) if error is not None else None

    def _settle_measured(
        self, eval_id: str, outcome: HeldoutOutcome | None, error: BaseException | None
    ) -> None:
        """A held-out sweep is tried again like an evaluation; it never fails a candidate by
        a fault of ours."""
        if isinstance(error, _STOPPING) or faults.is_full_disk(error):
            raise error
        if self.cancel.is_set() and (outcome is None or outcome.problem):
            return
        problem = faults.as_error(error) if outcome is None else _problem(outcome)
        if problem is not None:
            failures = self._failed_again(_measuring(eval_id), problem.code)
            if failures <= self._retries_for(problem):
                seconds = self.failure_rules.backoff(failures)
                self._queue.delay(eval_id, seconds, is_measurement=True)
                return
        if isinstance(error, TreewrightError):
            raise error
        broken = problem is not None and problem.code in OF_THE_SWEEP
        if outcome is None or (broken and not self.assigner.sweep_works()):
            assert problem is not None
            self._unmeasured[eval_id] = problem.code
        else:
            self.assigner.measured(eval_id, outcome)
            self.store.snapshot_if_due()

    def _failed_again(self, name: str, code: str) -> int:
        kind = (name, "forgiven" if code in FORGIVEN else "")
        failures = self._failures[kind] = self._failures.get(kind, 0) + 1
        return failures

    def _strictly(self, eval_id: str, error: EvalError) -> str | None:
        if not self.failure_rules.strict:
            return None
        return f"{eval_id} failed ({error.code}: {error.message}); stopped as asked"

    def _record(self, request: EvalRequest, outcome: EvalOutcome, worker: Worker | None) -> None:
        kind = ev.Completed if outcome.error is None else ev.Failed
        self.store.record(
            kind(
                eval_id=request.eval_id,
                attempt=request.attempt,
                outcome=outcome,
                worker=worker.name if worker else None,
                worker_pid=worker.pid if worker else None,
            )
        )
        self._queue.to_measure.extend(self.assigner.finished(request.eval_id))
        self.store.snapshot_if_due()

    def _others_got_through(self) -> bool:
        """Whether some evaluation of this time has an outcome that is its own."""
        return any(map(faults.got_through, self.assigner.peers()))

    def _may_be_outage(self, error: EvalError) -> bool:
        """Asked once it will not be tried again by itself."""
        if error.code in OF_THE_SWEEP:
            return not self._others_got_through() and not self.assigner.sweep_works()
        if error.code in OUTAGES:
            return True
        if error.code not in UNCLEAR:
            return False
        return self.assigner.has_barrier or not self._others_got_through()

    def _settle_held(self) -> str | None:
        """Decides about what was held once all others are through: a verdict, or a pause."""
        reasons: dict[str, list[str]] = {}
        examples: dict[str, str] = {}
        through = self._others_got_through()
        held, self._held = self._held, {}
        for eval_id, (request, outcome, worker) in sorted(held.items()):
            assert outcome.error is not None
            code = outcome.error.code
            pauses = self._evaluation(eval_id).pauses
            if through and (code in UNCLEAR or pauses + 1 >= MOST_PAUSES):
                self._record(request, outcome, worker)
                continue
            self._requeue(request, code, outcome, paused=True)
            reasons.setdefault(code, []).append(eval_id)
            examples.setdefault(code, outcome.error.message)
        if not reasons:
            return None
        return faults.explain_pause(self.assigner.where(), reasons, examples)

    def _retries_for(self, error: EvalError) -> int:
        """Of several candidates at once nobody knows whose code changed a file."""
        if error.code == DECIDING_FILE_CHANGED:
            return TIMES_FORGIVEN - 1 if self.executor.capacity > 1 else 0
        return self.failure_rules.retries_for(error)

    def _fault(self, request: EvalRequest, error: BaseException | None) -> EvalOutcome:
        """A fault of ours or of the machine, as an outcome. Worth another try."""
        if isinstance(error, EvaluationLost):
            spent, roles = usage_log.summed(error.answers)
        else:
            directory = self.store.run_dir / layout.experiment(request.eval_id)
            spent, roles = usage_log.spent(directory)
        return EvalOutcome(error=faults.as_error(error), usage=spent, roles=roles or UNSET)

    def _requeue(
        self, request: EvalRequest, reason: str, outcome: EvalOutcome, *, paused: bool = False
    ) -> None:
        self.store.record(
            ev.Requeued(
                eval_id=request.eval_id,
                attempt=request.attempt,
                reason=reason,
                usage=outcome.usage,
                paused=paused,
                roles=outcome.roles,
            )
        )


def _measuring(eval_id: str) -> str:
    """Under which failures of a held-out sweep are counted."""
    return f"{eval_id} held out"


def _problem(outcome: HeldoutOutcome) -> EvalError | None:
    """What a held-out sweep ended with is an answer: not retryable, unless it is nobody's."""
    return EvalError(outcome.problem, outcome.problem) if outcome.problem else None
