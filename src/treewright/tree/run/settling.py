"""What comes of a completion: an outcome, another try, or a pause because nobody got through.

A fault is not a verdict. What may be an outage is held until it is known how others fared.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field

from treewright.kernel.errors import LeaseLost, StorageError, TreewrightError, UsageError
from treewright.kernel.executors.base import Done, Executor, Worker
from treewright.tree.deciding.caps import CAP_REACHED
from treewright.tree.evaluating.heldout import HeldoutOutcome
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.evaluating.work import EvaluationLost, Outcome, Request
from treewright.tree.guard.baselines import DECIDING_FILE_CHANGED
from treewright.tree.records import events as ev
from treewright.tree.records import layout, usage_log
from treewright.tree.records.model import UNSET, EvalError, EvalOutcome
from treewright.tree.records.store import RunStore
from treewright.tree.repository.git import GitKilled
from treewright.tree.run import faults
from treewright.tree.run.assigning import Assigner
from treewright.tree.run.failure_rules import FORGIVEN, TIMES_FORGIVEN, FailureRules
from treewright.tree.run.faults import (
    MOST_PAUSES,
    OF_THE_SWEEP,
    OF_THE_TESTS,
    OUTAGES,
    UNCLEAR,
)
from treewright.tree.run.queueing import Queue

_STOPPING = (StorageError, LeaseLost, UsageError)
"""What says nothing about the candidate and would say the same of the next one."""
_OUTAGES_THAT_ARE_ENOUGH = 2
"""After so many in a row, each on every worker, the next one would fail as they did."""
_log = logging.getLogger("treewright")


@dataclass(slots=True)
class Settling:
    """Of one dispatcher: records what is certain, and puts back into its queue what is not."""

    store: RunStore
    executor: Executor[Request, Outcome]
    assigner: Assigner
    cancel: threading.Event
    failure_rules: FailureRules
    queue: Queue
    _held: dict[str, tuple[EvalRequest, EvalOutcome, Worker | None]] = field(default_factory=dict)
    _unmeasured: dict[str, str] = field(default_factory=dict)
    _outages: int = 0
    _failures: dict[tuple[str, str], int] = field(default_factory=dict)

    @property
    def is_outage(self) -> bool:
        enough = self._outages >= _OUTAGES_THAT_ARE_ENOUGH * self.executor.capacity
        return enough or bool(self._unmeasured)

    @property
    def has_held(self) -> bool:
        """Whether there is something whose failure is not judged yet."""
        return bool(self._held)

    def why_unmeasured(self) -> str | None:
        """Why the run must pause for want of held-out sweeps; None if it need not."""
        if not self._unmeasured:
            return None
        return faults.explain_unmeasured(self.assigner.where(), self._unmeasured)

    def failed_measurements(self, eval_id: str) -> int:
        """How often the held-out sweep of a candidate was tried in vain."""
        return sum(n for (name, _), n in self._failures.items() if name == _measuring(eval_id))

    def evaluated(
        self, request: EvalRequest, outcome: EvalOutcome | None, done: Done[Request, Outcome]
    ) -> str | None:
        """Records an outcome or a retry; returns what is wrong if the run must stop at it."""
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
            self.queue.add(eval_id)
            return None
        if error is not None:
            failures = self._failed_again(eval_id, error.code)
            if failures <= self._retries_for(error):
                self._requeue(request, error.code, outcome)
                self.queue.delay(eval_id, self.failure_rules.backoff(failures))
                return None
        if isinstance(done.error, TreewrightError) and not isinstance(done.error, GitKilled):
            raise done.error
        if error is not None and self._may_be_outage(error, request):
            self._outages += error.code in OUTAGES | OF_THE_SWEEP | OF_THE_TESTS
            self._held[eval_id] = (request, outcome, done.worker)
            self.assigner.held(eval_id, outcome)
            return self._strictly(eval_id, error)
        self._outages = 0
        self._record(request, outcome, done.worker)
        return self._strictly(eval_id, error) if error is not None else None

    def measured(
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
                self.queue.delay(eval_id, seconds, is_measurement=True)
                return
        if isinstance(error, TreewrightError) and not isinstance(error, GitKilled):
            raise error
        nobodys = problem is not None and problem.code in OUTAGES
        broken = problem is not None and problem.code in OF_THE_SWEEP
        if outcome is None or nobodys or (broken and not self.assigner.sweep_works()):
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
        self.queue.to_measure.extend(self.assigner.finished(request.eval_id))
        self.store.snapshot_if_due()

    def _others_got_through(self) -> bool:
        """Whether some evaluation of this time has an outcome that is its own."""
        return any(map(faults.got_through, self.assigner.peers()))

    def _may_be_outage(self, error: EvalError, request: EvalRequest) -> bool:
        """Asked once it will not be tried again by itself."""
        if error.code in OF_THE_SWEEP | OF_THE_TESTS:
            # Others that got through say nothing of an outage that came later. Elsewhere they have
            # to do: what a sweep needs may be wanting on this machine anyway.
            is_clear = not self.assigner.works_here and self._others_got_through()
            return not (is_clear or self._works(error.code, request.slot))
        if error.code in OUTAGES:
            return True
        if error.code not in UNCLEAR:
            return False
        return self.assigner.has_barrier or not self._others_got_through()

    def _works(self, code: str, slot: int | None, *, anew: bool = False) -> bool:
        """Whether what failed there does what it did when the run began. The place of what failed
        is free for that."""
        if code in OF_THE_SWEEP and not self.assigner.sweep_works(slot, anew=anew):
            return False
        return code not in OF_THE_TESTS or self.assigner.tests_work(slot, anew=anew)

    def held(self, *, goes_on: bool) -> str | None:
        """Decides about what was held once all others are through: a verdict, another try, or a
        pause, whose reason is returned. Nothing is tried again where the run does not go on."""
        reasons: dict[str, list[str]] = {}
        examples: dict[str, str] = {}
        through = self._others_got_through()
        held, self._held = self._held, {}
        works_again: dict[str, bool] = {}
        for eval_id, (request, outcome, worker) in sorted(held.items()):
            assert outcome.error is not None
            code = outcome.error.code
            if code in OF_THE_SWEEP | OF_THE_TESTS:
                if not self.assigner.works_here and through:  # it was only the first to be through
                    self._record(request, outcome, worker)
                    continue
                if goes_on and code not in works_again:
                    works_again[code] = self._works(code, request.slot, anew=True)
            passed = works_again.get(code, False)
            last = self.store.manifest.evaluations[eval_id].pauses + 1 >= MOST_PAUSES
            if through and code in UNCLEAR:
                self._record(request, outcome, worker)
                continue
            if self.cancel.is_set():  # nobody was asked a second time, and no outage stopped it
                self._requeue(request, code, outcome)
                continue
            if last and (through or passed):
                self._record(request, outcome, worker)
                continue
            self._requeue(request, code, outcome, paused=True)
            if passed:  # a night is not to end for what was wrong for a minute
                _log.info("  %s  %s: what failed works again, so it is tried again", eval_id, code)
                self.queue.add(eval_id)
                continue
            reasons.setdefault(code, []).append(eval_id)
            examples.setdefault(code, outcome.error.message)
        if not reasons:
            self._outages = 0
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
    """Return how a held-out sweep failed; None if it has results."""
    return EvalError(outcome.problem, outcome.problem) if outcome.problem else None
