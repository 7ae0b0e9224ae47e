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
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeGuard

from treewright.kernel import process
from treewright.kernel.errors import LeaseLost, StorageError, TreewrightError, UsageError
from treewright.kernel.executors.base import Done, Executor, WorkerLost
from treewright.tree import events as ev
from treewright.tree.deciding import DECIDING_FILE_CHANGED
from treewright.tree.evaluation import EVAL_TIMEOUT, EvalRequest
from treewright.tree.model import EvalError, EvalOutcome, Evaluation
from treewright.tree.store import RunStore

EvalExecutor = Executor[EvalRequest, EvalOutcome]
ExecutorFactory = Callable[[Callable[[EvalRequest], EvalOutcome]], EvalExecutor]
"""Makes an executor for a way of evaluating; one executor serves one depth."""

WORKER_LOST = "worker_lost"
MACHINE_BUSY = "machine_busy"
INTERNAL_ERROR = "internal_error"
_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 60.0
_FORGIVEN = (WORKER_LOST, MACHINE_BUSY)
_TIMES_FORGIVEN = 3
_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_STOPPING = (StorageError, LeaseLost, UsageError)
"""What says nothing about the candidate and would say the same of the next one."""
_CANCEL_TICK_SECONDS = 0.2


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
    _waiting: dict[str, deque[str]] = field(default_factory=dict)
    _delayed: list[tuple[float, str]] = field(default_factory=list)
    _running: dict[str, int] = field(default_factory=dict)
    _failures: dict[tuple[str, bool], int] = field(default_factory=dict)
    _in_flight: int = 0

    def run(self, eval_ids: Iterable[str]) -> None:
        """Returns when every one has an outcome; raises when told to stop before that."""
        for eval_id in eval_ids:
            self._enqueue(eval_id)
        failed: str | None = None
        while True:
            stopping = self.cancel.is_set() or failed is not None
            if not stopping:
                self._dispatch()
            if not self._in_flight and (stopping or not (self._waiting or self._delayed)):
                break
            done = self.executor.next_done(self._patience())
            if done is not None:
                self._in_flight -= 1
                self._running[done.request.parent_node_id] -= 1
                failed = self._settle(done) or failed
        if self.cancel.is_set():
            raise KeyboardInterrupt
        if failed is not None:
            raise StrictFailure(failed)

    def _enqueue(self, eval_id: str) -> None:
        parent = self.store.manifest.evaluations[eval_id].parent_node_id
        self._waiting.setdefault(parent, deque()).append(eval_id)

    def _dispatch(self) -> None:
        while self._delayed and self._delayed[0][0] <= time.monotonic():
            self._enqueue(heapq.heappop(self._delayed)[1])
        while self._in_flight < self.executor.capacity:
            parent = self._next_parent()
            if parent is None:
                return
            queue = self._waiting[parent]
            eval_id = queue.popleft()
            if not queue:
                del self._waiting[parent]
            evaluation = self.store.manifest.evaluations[eval_id]
            attempt = evaluation.attempt + 1
            self.store.record(ev.Started(eval_id=eval_id, attempt=attempt))
            self._in_flight += 1
            self._running[parent] = self._running.get(parent, 0) + 1
            self.executor.submit(self.request(evaluation, attempt))

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
        eval_id, attempt = done.request.eval_id, done.request.attempt
        if isinstance(done.error, _STOPPING) or _is_full_disk(done.error):
            raise done.error
        outcome = done.outcome or _fault(done.error)
        error = outcome.error
        if error is not None and self._was_interrupted(error):
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
        kind = ev.Completed if error is None else ev.Failed
        worker = done.worker
        self.store.record(
            kind(
                eval_id=eval_id,
                attempt=attempt,
                outcome=outcome,
                worker=worker.name if worker else None,
                worker_pid=worker.pid if worker else None,
            )
        )
        if error is not None and self.policy.strict:
            return f"{eval_id} failed ({error.code}: {error.message}); stopped as asked"
        return None

    def _retries_for(self, error: EvalError) -> int:
        """Of several candidates at once nobody knows whose code changed a file."""
        if error.code == DECIDING_FILE_CHANGED:
            return _TIMES_FORGIVEN - 1 if self.executor.capacity > 1 else 0
        return self.policy.retries_for(error)

    def _was_interrupted(self, error: EvalError) -> bool:
        """What ran may have been hit by the same Ctrl-C: a failure then is not an answer."""
        return error.code == "cancelled" or self.cancel.is_set()

    def _requeue(self, request: EvalRequest, reason: str, outcome: EvalOutcome) -> None:
        self.store.record(
            ev.Requeued(
                eval_id=request.eval_id,
                attempt=request.attempt,
                reason=reason,
                usage=outcome.usage,
            )
        )


def _is_full_disk(error: BaseException | None) -> TypeGuard[OSError]:
    return isinstance(error, OSError) and error.errno in _FULL_DISK


def _fault(error: BaseException | None) -> EvalOutcome:
    """A fault of ours or of the machine, as an outcome. Worth another try."""
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, WorkerLost):
        code, message = WORKER_LOST, str(error)
    elif isinstance(error, OSError) and error.errno in process.SHORTAGES:
        code = MACHINE_BUSY
    else:
        code = INTERNAL_ERROR
    return EvalOutcome(error=EvalError(code, message, retryable=True))
