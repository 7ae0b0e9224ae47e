"""What happens to failures: how often each kind is tried again, and after how long."""

from __future__ import annotations

from dataclasses import dataclass

from treewright.kernel.errors import UsageError
from treewright.tree.evaluating.request import EVAL_TIMEOUT
from treewright.tree.records.model import EvalError
from treewright.tree.running.faults import CANCELLED, MACHINE_BUSY, WORKER_LOST

FORGIVEN = (WORKER_LOST, MACHINE_BUSY, CANCELLED)
TIMES_FORGIVEN = 3
_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class FailureRules:
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
        if error.code in FORGIVEN:
            return max(self.retries, TIMES_FORGIVEN)
        if error.code == EVAL_TIMEOUT:
            return self.retries if self.retry_timeouts else 0
        return self.retries if error.retryable else 0

    def backoff(self, failures: int) -> float:
        return min(_LONGEST_BACKOFF_SECONDS, self.first_backoff_seconds * 2 ** (failures - 1))
