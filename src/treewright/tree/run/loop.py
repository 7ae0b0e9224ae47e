"""The loop of a run: start work, wait for a result, decide about it, record it.

The loop looks at the manifest first and does the missing work, so the same code begins a search and
continues one after a crash. Neither the worker that runs an evaluation nor the order of the results
changes a decision of the search.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import msgspec

from treewright.kernel.executors.protocol import Done, Executor, Worker
from treewright.kernel.procs import proctree
from treewright.tree.deciding.caps import CAP_REACHED
from treewright.tree.evaluating.request import (
    EvalRequest,
    HeldoutOutcome,
    HeldoutRequest,
    Outcome,
    Request,
)
from treewright.tree.evaluating.worker import Work as WorkFunction
from treewright.tree.records import events as ev
from treewright.tree.records import layout, usage_log
from treewright.tree.records.model import UNSET, EvalError, EvalOutcome, Evaluation
from treewright.tree.run import faults, outcomes
from treewright.tree.run.faults import Halted, Paused, StrictFailure
from treewright.tree.run.outcomes import (
    ALWAYS_RETRIED,
    CheckRoot,
    Circumstances,
    Hold,
    Pause,
    Record,
    Retry,
    RootCommand,
)
from treewright.tree.run.root_commands import RootCheck
from treewright.tree.run.scheduler import Scheduler
from treewright.tree.run.tree_search import RunParts, TreeSearch, Work

EvalExecutor = Executor[Request, Outcome]
ExecutorFactory = Callable[[WorkFunction], EvalExecutor]
"""Makes an executor that does this work."""
ControlState = Literal["go", "wait", "end"]
"""Whether work may start now, later, or not any more in this invocation."""

OUTAGE_THRESHOLD = 2
"""Start no more work after this many consecutive outages per worker."""
_PAUSE_TICK_SECONDS = 0.3
_CANCEL_TICK_SECONDS = 0.2
_PREPARING_TICK_SECONDS = 0.02
_log = logging.getLogger("treewright")
A = TypeVar("A")


@dataclass(slots=True)
class WorkLoop:
    """Runs evaluations and held-out sweeps until none is left.

    `control_state` applies the user's commands and says whether work may start. A failure that an
    outage may have caused is held until the other evaluations have ended.
    """

    parts: RunParts
    search: TreeSearch
    executor: EvalExecutor
    control_state: Callable[[], ControlState]
    root_check: RootCheck
    _scheduler: Scheduler = field(init=False)
    _held: dict[str, tuple[EvalRequest, EvalOutcome, Worker | None]] = field(default_factory=dict)
    _unmeasured: dict[str, str] = field(default_factory=dict)
    """Evaluations without held-out results because of an outage, with the code of the failure."""
    _consecutive_outages: int = 0
    _failures: dict[tuple[str, str], int] = field(default_factory=dict)
    """Failures by evaluation or sweep; those that are always retried are counted apart."""

    def __post_init__(self) -> None:
        self._scheduler = Scheduler(
            lambda eval_id: self._evaluation(eval_id).parent_node_id,
            self.executor.capacity,
            self.parts.options.failure_rules.max_per_node,
        )

    def run(self, stage: Work) -> None:
        """Return when all work of a stage has its outcome.

        Raises:
            KeyboardInterrupt: The user cancelled the run.
            Paused: An outage keeps evaluations from ending.
            StrictFailure: An evaluation failed and the run is strict.
            Halted: The user stopped the run, or a cap is reached.
        """
        self._add(stage)
        failure = pause = None
        while True:
            state = self.control_state()
            must_end = self.parts.cancel.is_set() or failure is not None or state == "end"
            must_drain = must_end or self._is_outage  # start nothing, wait for the rest
            if state == "go" and not must_drain:
                self._start_work()
            is_done = state == "go" and not self._is_work_left
            if not self._scheduler.in_flight and (must_drain or is_done):
                if not self._held:
                    break
                pause = self._decide_held(goes_on=not must_end)
                if must_end or pause is not None:
                    break
                continue
            done = self.executor.next_done(self._wait_seconds(state))
            if done is not None:
                failure = self._take_result(done) or failure
        if self.parts.cancel.is_set():
            raise KeyboardInterrupt
        if pause is None and self._unmeasured:
            pause = faults.explain_unmeasured(self.search.position(), self._unmeasured)
        if pause is not None:
            self.search.on_pause()
            raise Paused(pause)
        if failure is not None:
            raise StrictFailure(failure)
        if state == "end":
            raise Halted

    @property
    def _is_outage(self) -> bool:
        is_reached = self._consecutive_outages >= OUTAGE_THRESHOLD * self.executor.capacity
        return is_reached or bool(self._unmeasured)

    @property
    def _is_work_left(self) -> bool:
        return not self._scheduler.is_empty or self.search.is_preparing()

    def _wait_seconds(self, state: ControlState) -> float | None:
        """Return how long to wait for a result before other work may be due; None for ever."""
        if state == "wait":
            return _PAUSE_TICK_SECONDS
        if self.parts.cancel.is_set():
            return None
        if self.search.is_preparing():
            return _PREPARING_TICK_SECONDS
        due = self._scheduler.seconds_to_next()
        if due is None or self._scheduler.in_flight:
            return due
        return min(due, _CANCEL_TICK_SECONDS)  # no result can end the wait, a cancellation must

    # -- starting -------------------------------------------------------------------------

    def _add(self, stage: Work) -> None:
        for eval_id in stage.evaluations:
            if faults.is_suspect(self._evaluation(eval_id)):
                self._scheduler.add_suspect(eval_id)
            else:
                self._scheduler.add(eval_id)
        for eval_id in stage.measurements:
            self._scheduler.add_measurement(eval_id)

    def _start_work(self) -> None:
        """Start as much work as there are free workers, and ask the search for more."""
        self._scheduler.add_due()
        if self._scheduler.is_exclusive:
            return
        self._start_waiting()
        while more := self.search.more(self._scheduler.room):
            for eval_id in more:
                self._scheduler.add(eval_id)
            self._start_waiting()
        if not self.search.is_preparing():
            eval_id = self._scheduler.take_suspect()
            if eval_id is not None:
                self._start_evaluation(eval_id)

    def _start_waiting(self) -> None:
        while (eval_id := self._scheduler.take_measurement()) is not None:
            self._start_measurement(eval_id)
        meter = self.parts.options.meter
        while self._scheduler.has_free_worker and meter.may_start(self.parts.manifest):
            eval_id = self._scheduler.take_evaluation()
            if eval_id is None:
                break
            self._start_evaluation(eval_id)

    def _start_evaluation(self, eval_id: str) -> None:
        parts, evaluation = self.parts, self._evaluation(eval_id)
        attempt = evaluation.attempt + 1
        request = parts.requests.evaluation(
            evaluation,
            attempt,
            timeout_seconds=parts.options.failure_rules.timeout_seconds,
            allowance=parts.options.meter.allow(parts.manifest, eval_id, self.executor.capacity),
        )
        parts.store.record(ev.Started(eval_id=eval_id, attempt=attempt, boot_id=proctree.boot_id()))
        slot = self._scheduler.begin(eval_id, alone=faults.is_suspect(evaluation))
        self.executor.submit(msgspec.structs.replace(request, slot=slot))

    def _start_measurement(self, eval_id: str) -> None:
        parts, evaluation = self.parts, self._evaluation(eval_id)
        if not parts.manifest.dry_run:
            _log.info("  %s  measured again on the held-out configs", eval_id)
        name = _measurement_key(eval_id)
        failures = sum(count for (key, _), count in self._failures.items() if key == name)
        request = parts.confirmer.request(
            parts.manifest,
            evaluation,
            evaluation.attempt + failures,
            parts.requests.idea(evaluation),
        )
        slot = self._scheduler.begin(eval_id, is_measurement=True)
        self.executor.submit(msgspec.structs.replace(request, slot=slot))

    # -- results --------------------------------------------------------------------------

    def _take_result(self, done: Done[Request, Outcome]) -> str | None:
        """Record a result or put its work back; return a failure that ends a strict run."""
        request, outcome = done.request, done.outcome
        is_measurement = isinstance(request, HeldoutRequest)
        self._scheduler.end(request.eval_id, request.slot, is_measurement=is_measurement)
        if faults.is_fatal(done.error):
            raise done.error
        if isinstance(request, HeldoutRequest):
            assert outcome is None or isinstance(outcome, HeldoutOutcome)
            self._take_measurement(request, outcome, done.error)
            return None
        assert outcome is None or isinstance(outcome, EvalOutcome)
        failure = self._take_outcome(request, outcome or self._lost(request, done.error), done)
        self.parts.known_results.over(request.eval_id)
        return failure

    def _take_outcome(
        self, request: EvalRequest, outcome: EvalOutcome, done: Done[Request, Outcome]
    ) -> str | None:
        eval_id, error, rules = request.eval_id, outcome.error, self.parts.options.failure_rules
        failures = self._count_failure(eval_id, error)
        action = self._check_and_decide(
            lambda root_works: outcomes.decide_outcome(
                error, rules, self._circumstances(error, failures, root_works)
            ),
            request.slot,
        )
        if isinstance(action, Retry):
            self._requeue(request, outcome, action)
            return None
        if faults.is_reported(done.error):
            raise done.error
        if isinstance(action, Hold):
            self._consecutive_outages += action.is_outage
            self._held[eval_id] = (request, outcome, done.worker)
            self.parts.options.meter.release(eval_id, outcome)
        else:
            self._consecutive_outages = 0
            self._record(request, outcome, done.worker)
        if error is None or not rules.strict:
            return None
        return f"{eval_id} failed ({error.code}: {error.message}); stopped as asked"

    def _take_measurement(
        self,
        request: HeldoutRequest,
        outcome: HeldoutOutcome | None,
        error: BaseException | None,
    ) -> None:
        eval_id, problem = request.eval_id, faults.as_problem(outcome, error)
        failures = self._count_failure(_measurement_key(eval_id), problem)
        action = self._check_and_decide(
            lambda root_works: outcomes.decide_measurement(
                problem,
                self.parts.options.failure_rules,
                self._circumstances(problem, failures, root_works),
                is_measured=outcome is not None,
            )
        )
        if isinstance(action, Retry):
            if action.delay_seconds is not None:
                self._scheduler.delay(eval_id, action.delay_seconds, is_measurement=True)
            return
        if faults.is_reported(error):
            raise error
        if isinstance(action, Pause):
            self._unmeasured[eval_id] = action.code
        else:
            assert outcome is not None
            self.search.on_measured(eval_id, outcome)
            self.parts.store.snapshot_if_due()

    def _decide_held(self, *, goes_on: bool) -> str | None:
        """Decide about the failures that were held; return why the run pauses, if it does."""
        held, self._held = self._held, {}
        root_works: dict[RootCommand, bool] = {}
        paused: dict[str, list[EvalError]] = {}
        has_passing_peer = self._has_passing_peer()
        for eval_id, (request, outcome, worker) in sorted(held.items()):
            error = outcome.error
            assert error is not None
            pauses = self._evaluation(eval_id).pauses
            action = self._check_and_decide(
                lambda answers, error=error, pauses=pauses: outcomes.decide_held(
                    error.code,
                    pauses,
                    Circumstances(
                        is_cancelled=self.parts.cancel.is_set(),
                        has_passing_peer=has_passing_peer,
                        is_local=self.parts.options.is_local,
                        root_works=answers,
                    ),
                    goes_on=goes_on,
                ),
                request.slot,
                root_works,
            )
            match action:
                case Record():
                    self._record(request, outcome, worker)
                case Retry():
                    if action.is_after_outage:
                        message = "  %s  %s: what failed works again, so it is tried again"
                        _log.info(message, eval_id, error.code)
                    self._requeue(request, outcome, action)
                case Pause():
                    self._requeue(request, outcome, Retry(error.code, None, is_after_outage=True))
                    paused.setdefault(error.code, []).append(error)
        if paused:
            return faults.explain_pause(self.search.position(), paused)
        self._consecutive_outages = 0
        return None

    def _check_and_decide(
        self,
        decide: Callable[[Mapping[RootCommand, bool]], A | CheckRoot],
        slot: int | None = None,
        fresh: dict[RootCommand, bool] | None = None,
    ) -> A:
        """Decide, and make the root checks that the decision asks for.

        Args:
            decide: Returns an action, given the answers of the root checks so far.
            slot: The slot of the failed evaluation.
            fresh: Answers that several decisions share. With it the root is checked again even if
                an earlier answer is still valid.
        """
        answers = {} if fresh is None else fresh
        while isinstance(action := decide(answers), CheckRoot):
            answers[action.command] = self.parts.manifest.dry_run or self.root_check.works(
                action.command, slot, is_fresh=fresh is not None
            )
        return action

    def _circumstances(
        self, error: EvalError | None, failures: int, root_works: Mapping[RootCommand, bool]
    ) -> Circumstances:
        return Circumstances(
            failures=failures,
            has_several_workers=self.executor.capacity > 1,
            is_cancelled=self.parts.cancel.is_set(),
            has_passing_peer=error is not None and self._has_passing_peer(),
            has_barrier=self.search.has_barrier,
            is_local=self.parts.options.is_local,
            root_works=root_works,
        )

    def _has_passing_peer(self) -> bool:
        return any(map(faults.has_own_outcome, self.search.peers()))

    def _count_failure(self, name: str, error: EvalError | None) -> int:
        """Count a failure of this evaluation or sweep; return how many there are of its kind."""
        if error is None or error.code == CAP_REACHED or self.parts.cancel.is_set():
            return 0
        kind = (name, "always" if error.code in ALWAYS_RETRIED else "")
        self._failures[kind] = self._failures.get(kind, 0) + 1
        return self._failures[kind]

    # -- recording ------------------------------------------------------------------------

    def _evaluation(self, eval_id: str) -> Evaluation:
        return self.parts.manifest.evaluations[eval_id]

    def _record(self, request: EvalRequest, outcome: EvalOutcome, worker: Worker | None) -> None:
        kind = ev.Completed if outcome.error is None else ev.Failed
        self.parts.store.record(
            kind(
                eval_id=request.eval_id,
                attempt=request.attempt,
                outcome=outcome,
                worker=worker.name if worker else None,
                worker_pid=worker.pid if worker else None,
            )
        )
        self.parts.known_results.add([self._evaluation(request.eval_id)])
        for eval_id in self.search.on_recorded(request.eval_id):
            self._scheduler.add_measurement(eval_id)
        self.parts.store.snapshot_if_due()

    def _requeue(self, request: EvalRequest, outcome: EvalOutcome, retry: Retry) -> None:
        eval_id = request.eval_id
        self.parts.store.record(
            ev.Requeued(
                eval_id=eval_id,
                attempt=request.attempt,
                reason=retry.reason,
                usage=outcome.usage,
                paused=retry.is_after_outage,
                roles=outcome.roles,
            )
        )
        if retry.reason == CAP_REACHED:
            self.parts.options.meter.fell_short(eval_id)
        if retry.delay_seconds is None:
            return
        if retry.is_after_outage or retry.reason == CAP_REACHED:
            self._scheduler.add(eval_id)
        else:
            self._scheduler.delay(eval_id, retry.delay_seconds)

    def _lost(self, request: EvalRequest, error: BaseException | None) -> EvalOutcome:
        """Return the outcome of an evaluation that ended with an exception of its worker."""
        directory = self.parts.store.run_dir / layout.experiment(request.eval_id)
        spent, roles = usage_log.spent(directory)
        return EvalOutcome(error=faults.as_error(error), usage=spent, roles=roles or UNSET)


def _measurement_key(eval_id: str) -> str:
    """Return the name under which failures of a held-out sweep are counted."""
    return f"{eval_id} held out"
