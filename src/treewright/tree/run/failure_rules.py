"""What happens to failed evaluations: how often each kind is tried again, and after how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from treewright.kernel.errors import UsageError
from treewright.tree.evaluating.measuring import PARENT_SWEEP_FAILED
from treewright.tree.evaluating.request import EVAL_TIMEOUT
from treewright.tree.records.model import EvalError
from treewright.tree.run.faults import (
    CANCELLED,
    MACHINE_BUSY,
    OF_THE_SWEEP,
    OF_THE_TESTS,
    WORKER_LOST,
)

FORGIVEN = (WORKER_LOST, MACHINE_BUSY, CANCELLED)
TIMES_FORGIVEN = 3
_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 60.0

Retried = Literal["faults", "commands", "all"]
"""Which failures are tried again: `faults` can pass while the candidate stays the same, such as an
endpoint that is down; `commands` are faults and every command (tests, sweep, agent) that ended with
an error or ran out of time; `all` are all failed evaluations, also a patch that does not apply."""
_FAILED_COMMANDS = frozenset(
    {*OF_THE_SWEEP, *OF_THE_TESTS, PARENT_SWEEP_FAILED, "agent_failed", "agent_timeout"}
)


@dataclass(frozen=True, slots=True)
class FailureRules:
    """`retries` counts the tries beyond the first, `retried` says of which failures."""

    retries: int = 0
    retried: Retried | None = None
    strict: bool = False
    timeout_seconds: float | None = None
    max_per_node: int | None = None
    first_backoff_seconds: float = _FIRST_BACKOFF_SECONDS

    def __post_init__(self) -> None:
        if self.retried is not None and not self.retries:
            raise UsageError("--retry-failures needs --eval-retries: it says what they cover")

    def retries_for(self, error: EvalError) -> int:
        """Return how often a failure of this kind is tried again."""
        if error.code in FORGIVEN:
            return max(self.retries, TIMES_FORGIVEN)
        retried = self.retried or "commands"
        is_fault = error.retryable and error.code != EVAL_TIMEOUT
        is_covered = (
            retried == "all"
            or is_fault
            or (retried == "commands" and error.code in _FAILED_COMMANDS)
        )
        return self.retries if is_covered else 0

    def backoff(self, failures: int) -> float:
        """Return the seconds to wait before the next try, after so many failures."""
        return min(_LONGEST_BACKOFF_SECONDS, self.first_backoff_seconds * 2 ** (failures - 1))
