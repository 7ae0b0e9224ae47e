"""Getting every queued evaluation of a depth to an outcome: order, fairness, retries.

Knows executors and events, nothing of how an evaluation works. Which worker does what,
and in which order outcomes arrive, changes nothing that is decided later.
"""

from __future__ import annotations

import errno
import heapq
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeGuard

from treewright.kernel import process
from treewright.kernel.errors import LeaseLost, StorageError, TreewrightError, UsageError
from treewright.kernel.executors.base import Done, Executor, Worker, WorkerLost
from treewright.tree.deciding.kept_files import DECIDING_FILE_CHANGED
from treewright.tree.evaluating.evaluation import EVAL_TIMEOUT, EvalRequest
from treewright.tree.records import events as ev
from treewright.tree.records import usage_log
from treewright.tree.records.model import EvalError, EvalOutcome, Evaluation
from treewright.tree.records.store import RunStore
from treewright.tree.running.faults import (
    CANCELLED,
    DOUBTFUL,
    INTERNAL_ERROR,
    MACHINE_BUSY,
    MOST_PAUSES,
    OF_THE_SWEEP,
    OUTAGES,
    WORKER_LOST,
    Paused,
    explain_pause,
)

EvalExecutor = Executor[EvalRequest, EvalOutcome]
ExecutorFactory = Callable[[Callable[[EvalRequest], EvalOutcome]], EvalExecutor]
"""Makes an executor for a way of evaluating; one executor serves one depth."""

_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 60.0
_FORGIVEN = (WORKER_LOST, MACHINE_BUSY, CANCELLED)
_TIMES_FORGIVEN = 3
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_STOPPING = (StorageError, LeaseLost, UsageError)
"""What says nothing about the candidate and would say the same of the next one."""
_CANCEL_TICK_SECONDS = 0.2
_OUTAGES_THAT_ARE_ENOUGH = 2
"""After so many in a row, each on every worker, the next one would fail as they did."""
_LOSSES_OF_A_SUSPECT = 2


class StrictFailure(TreewrightError):
    """An evaluation failed and the run was told to stop at that."""


@dataclass(frozen=True, slots=True)
class FailurePolicy:
    """`retries` counts tries beyond the first, for failures that can pass on a second try."""

    retries: int = 0
    retry_timeouts: bool = False
    strict: bool = False
    timeout_seconds: float | None = None
    max_per_node: int | None = None
    first_backoff_seconds: float = _FIRST_BACKOFF_SECONDS

    def __post_init__(self) -> None:
        if self.retry_timeouts and not self.retries:
            raise UsageError("--retry-timeouts needs --eval-retries: it says what they cover")

    def retries_for(self, error: EvalError) -> int:
        """How often this kind of failure is tried again. An answer is never asked twice."""
        if error.code in _FORGIVEN:
            return max(self.retries, _TIMES_FORGIVEN)
        if error.code == EVAL_TIMEOUT:
            return self.retries if self.retry_timeouts else 0
        return self.retries if error.retryable else 0

    def backoff(self, failures: int) -> float:
        return min(_LONGEST_BACKOFF_SECONDS, self.first_backoff_seconds * 2 ** (failures - 1))


@dataclass(slots=True)
class Dispatcher:
    """Runs the pending evaluations of one depth."""

    store: RunStore
    executor: EvalExecutor
    request: Callable[[Evaluation, int], EvalRequest]
    cancel: threading.Event
    policy: FailurePolicy = field(default_factory=FailurePolicy)
    sweep_works: Callable[[], bool] = lambda: True
    """Asked before a failed sweep is put down to the first candidate of a depth."""
    _held: dict[str, Done[EvalRequest, EvalOutcome]] = field(default_factory=dict)
    _alone: deque[str] = field(default_factory=deque)
    _outages: int = 0
    _waiting: dict[str, deque[str]] = field(default_factory=dict)
    _delayed: list[tuple[float, str]] = field(default_factory=list)
    _running: dict[str, int] = field(default_factory=dict)
    _failures: dict[tuple[str, bool], int] = field(default_factory=dict)
    _in_flight: int = 0

    def run(self, eval_ids: Iterable[str]) -> None:
        """Returns when every one has an outcome; raises when told to stop before that."""
        for eval_id in eval_ids:
            if _is_suspect(self.store.manifest.evaluations[eval_id]):
                self._alone.append(eval_id)
            else:
                self._enqueue(eval_id)
        failed: str | None = None
        while True:
            stopping = self.cancel.is_set() or failed is not None or self._is_outage()
            if not stopping:
                self._dispatch()
            if not self._in_flight and (stopping or not self._is_work_left()):
                break
            done = self.executor.next_done(self._patience())
            if done is not None:
                self._in_flight -= 1
                self._running[done.request.parent_node_id] -= 1
                failed = self._settle(done) or failed
        pause = self._settle_held()
        if self.cancel.is_set():
            raise KeyboardInterrupt
        if pause is not None:
            raise Paused(pause)
        if failed is not None:
            raise StrictFailure(failed)

    def _is_work_left(self) -> bool:
        return bool(self._waiting or self._delayed or self._alone)

    def _is_outage(self) -> bool:
        return self._outages >= _OUTAGES_THAT_ARE_ENOUGH * self.executor.capacity

    def _enqueue(self, eval_id: str) -> None:
        parent = self.store.manifest.evaluations[eval_id].parent_node_id
        self._waiting.setdefault(parent, deque()).append(eval_id)

    def _dispatch(self) -> None:
        while self._delayed and self._delayed[0][0] <= time.monotonic():
            self._enqueue(heapq.heappop(self._delayed)[1])
        if self._alone_is_running():
            return
        while self._in_flight < self.executor.capacity:
            parent = self._next_parent()
            if parent is None:
                break
            queue = self._waiting[parent]
            eval_id = queue.popleft()
            if not queue:
                del self._waiting[parent]
            self._start(eval_id)
        if self._alone and not (self._in_flight or self._waiting or self._delayed):
            # With it a coordinator died: should that happen again, nobody else is suspected.
            self._start(self._alone.popleft())

    def _start(self, eval_id: str) -> None:
        evaluation = self.store.manifest.evaluations[eval_id]
        attempt, parent = evaluation.attempt + 1, evaluation.parent_node_id
        request = self.request(evaluation, attempt)
        self.store.record(ev.Started(eval_id=eval_id, attempt=attempt))
        self._in_flight += 1
        self._running[parent] = self._running.get(parent, 0) + 1
        self.executor.submit(request)

    def _alone_is_running(self) -> bool:
        return any(e.status == "running" and _is_suspect(e) for e in self._of_depth())

    def _next_parent(self) -> str | None:
        """The parent of the oldest waiting evaluation that its node's cap admits."""
        cap = self.policy.max_per_node
        allowed = [
            (queue[0], parent)
            for parent, queue in self._waiting.items()
            if cap is None or self._running.get(parent, 0) < cap
        ]
        return min(allowed)[1] if allowed else None

    def _patience(self) -> float | None:
        """How long to wait for a completion before something else may be due.

        Without anything under way nothing but the clock ends the wait, so it is short
        enough to notice a cancellation."""
        if not self._delayed or self.cancel.is_set():
            return None
        left = max(0.0, self._delayed[0][0] - time.monotonic())
        return left if self._in_flight else min(left, _CANCEL_TICK_SECONDS)

    def _settle(self, done: Done[EvalRequest, EvalOutcome]) -> str | None:
        """Records an outcome or a retry; returns what is wrong if the run must stop at it."""
        eval_id = done.request.eval_id
        if isinstance(done.error, _STOPPING) or _is_full_disk(done.error):
            raise done.error
        outcome = done.outcome or self._fault(done)
        error = outcome.error
        if error is not None and self.cancel.is_set():
            # What ran may have been hit by the same Ctrl-C: a failure then is not an answer.
            self._requeue(done.request, "interrupted", outcome)
            return None
        if error is not None:
            kind_of_failure = (eval_id, error.code in _FORGIVEN)
            failures = self._failures[kind_of_failure] = self._failures.get(kind_of_failure, 0) + 1
            if failures <= self._retries_for(error):
                self._requeue(done.request, error.code, outcome)
                due = time.monotonic() + self.policy.backoff(failures)
                heapq.heappush(self._delayed, (due, eval_id))
                return None
        if isinstance(done.error, TreewrightError):
            raise done.error
        if error is not None and self._may_be_outage(error):
            self._outages += error.code in OUTAGES or error.code in OF_THE_SWEEP
            self._held[eval_id] = Done(done.request, outcome, worker=done.worker)
            return self._strictly(eval_id, error)
        self._outages = 0
        self._record(done.request, outcome, done.worker)
        return self._strictly(eval_id, error) if error is not None else None

    def _strictly(self, eval_id: str, error: EvalError) -> str | None:
        if not self.policy.strict:
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
        self.store.snapshot_if_due()

    def _of_depth(self) -> Iterator[Evaluation]:
        manifest = self.store.manifest
        for eval_id in manifest.depths[manifest.current_depth].eval_ids:
            yield manifest.evaluations[eval_id]

    def _others_got_through(self) -> bool:
        """Whether some evaluation of this depth has an outcome that is its own."""
        return any(
            e.status == "completed"
            or (e.status == "failed" and e.error is not None and e.error.code not in DOUBTFUL)
            for e in self._of_depth()
        )

    def _may_be_outage(self, error: EvalError) -> bool:
        """Asked once it will not be tried again by itself."""
        if error.code in OF_THE_SWEEP:
            return not self._others_got_through() and not self.sweep_works()
        return error.code in OUTAGES or error.code in DOUBTFUL

    def _settle_held(self) -> str | None:
        """Decides about what was held once all others are through: a verdict, or a pause."""
        reasons: dict[str, list[str]] = {}
        examples: dict[str, str] = {}
        through = self._others_got_through()
        for eval_id, done in sorted(self._held.items()):
            outcome = done.outcome
            assert outcome is not None
            assert outcome.error is not None
            code = outcome.error.code
            pauses = self.store.manifest.evaluations[eval_id].pauses
            if through and (code in DOUBTFUL or pauses + 1 >= MOST_PAUSES):
                self._record(done.request, outcome, done.worker)
                continue
            self._requeue(done.request, code, outcome, paused=True)
            reasons.setdefault(code, []).append(eval_id)
            examples.setdefault(code, outcome.error.message)
        if not reasons:
            return None
        return explain_pause(self.store.manifest.current_depth + 1, reasons, examples)

    def _retries_for(self, error: EvalError) -> int:
        """Of several candidates at once nobody knows whose code changed a file."""
        if error.code == DECIDING_FILE_CHANGED:
            return _TIMES_FORGIVEN - 1 if self.executor.capacity > 1 else 0
        return self.policy.retries_for(error)

    def _fault(self, done: Done[EvalRequest, EvalOutcome]) -> EvalOutcome:
        """A fault of ours or of the machine, as an outcome. Worth another try."""
        spent = usage_log.total(self.store.run_dir / f"eval/{done.request.eval_id}/experiment")
        return EvalOutcome(error=_as_error(done.error), usage=spent)

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
            )
        )


def _is_suspect(evaluation: Evaluation) -> bool:
    """Coordinators died while it ran; whether because of it shows when it runs alone."""
    return evaluation.lost_alone + evaluation.lost_together >= _LOSSES_OF_A_SUSPECT


def _is_full_disk(error: BaseException | None) -> TypeGuard[OSError]:
    return isinstance(error, OSError) and error.errno in _FULL_DISK


def _as_error(error: BaseException | None) -> EvalError:
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, WorkerLost):
        code, message = WORKER_LOST, str(error)
    elif isinstance(error, OSError) and error.errno in process.SHORTAGES:
        code = MACHINE_BUSY
    else:
        code = INTERNAL_ERROR
    return EvalError(code, message, retryable=True)
