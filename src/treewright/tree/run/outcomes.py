"""Decide what happens when an evaluation or a held-out sweep has ended. Pure.

`decide_outcome` is asked when an evaluation ends, `decide_held` when all other evaluations have
ended as well, and `decide_measurement` when a held-out sweep ends. Each returns one action:

- `Record`: the outcome is the candidate's own; record it.
- `Retry`: put the work back into the queue.
- `Hold`: an outage may have caused the failure; keep it until the other evaluations have ended.
- `Pause`: an outage did cause it; put the evaluation back into the queue and pause the run.
- `CheckRoot`: run the sweep or the tests on the root commit, then ask again with the answer.

A fault is not a verdict: an endpoint that is down, an expired key or a busy machine would fail
every candidate alike, so such a failure is neither recorded nor learned from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from treewright.kernel.errors import UsageError
from treewright.tree.deciding.caps import CAP_REACHED
from treewright.tree.evaluating.measuring import PARENT_SWEEP_FAILED
from treewright.tree.evaluating.request import EVAL_TIMEOUT
from treewright.tree.guard.baselines import DECIDING_FILE_CHANGED
from treewright.tree.records.model import EvalError

WORKER_LOST = "worker_lost"
MACHINE_BUSY = "machine_busy"
INTERNAL_ERROR = "internal_error"
CANCELLED = "cancelled"
QUARANTINED = "quarantined"
INTERRUPTED = "interrupted"

OUTAGE_CODES = frozenset(
    {
        "llm_unreachable", "llm_unavailable", "llm_timeout", "llm_no_key", "llm_denied",
        "agent_missing", MACHINE_BUSY, CANCELLED,
    }
)  # fmt: skip
"""Failures that a candidate cannot cause."""

UNCLEAR_CODES = frozenset(
    {
        WORKER_LOST, INTERNAL_ERROR, "llm_failed", "agent_failed", "agent_timeout",
        PARENT_SWEEP_FAILED,
    }
)  # fmt: skip
"""Failures that the candidate caused if another evaluation passed, and an outage if none did."""

SWEEP_CODES = frozenset({"sweep_failed", "sweep_timeout", EVAL_TIMEOUT})
"""Failures that the candidate caused if the sweep works on the root, and an outage if not."""

TEST_CODES = frozenset({"tests_failed", "tests_timeout", EVAL_TIMEOUT})
"""Failures that the candidate caused if the tests pass on the root, and an outage if not."""

MAX_PAUSES = 3
"""An evaluation that fails by an outage for the third time has failed on its own, if others pass or
the root works."""

ALWAYS_RETRIED = (WORKER_LOST, MACHINE_BUSY, CANCELLED)
FAULT_RETRIES = 3
"""Retries of a fault in `ALWAYS_RETRIED`, even if the user asks for fewer."""

_FIRST_BACKOFF_SECONDS = 1.0
_LONGEST_BACKOFF_SECONDS = 60.0

RetriedFailures = Literal["faults", "commands", "all"]
"""Which failures are retried: `faults` can pass while the candidate stays the same, such as an
endpoint that is down; `commands` are faults and every command (tests, sweep, agent) that ended with
an error or ran out of time; `all` are all failed evaluations, also a patch that does not apply."""
_COMMAND_CODES = frozenset(
    {*SWEEP_CODES, *TEST_CODES, PARENT_SWEEP_FAILED, "agent_failed", "agent_timeout"}
)

RootCommand = Literal["sweep", "tests"]


@dataclass(frozen=True, slots=True)
class FailureRules:
    """The user's rules for failures.

    Attributes:
        retries: The attempts beyond the first.
        retried: The failures that are retried; None stands for `commands`.
        strict: Whether the first failure ends the invocation.
        timeout_seconds: The time limit of an evaluation.
        max_per_node: The most evaluations of one parent at a time.
        first_backoff_seconds: The wait before the first retry; it doubles with each failure.
    """

    retries: int = 0
    retried: RetriedFailures | None = None
    strict: bool = False
    timeout_seconds: float | None = None
    max_per_node: int | None = None
    first_backoff_seconds: float = _FIRST_BACKOFF_SECONDS

    def __post_init__(self) -> None:
        if self.retried is not None and not self.retries:
            raise UsageError("--retry-failures needs --eval-retries: it says what they cover")

    def count_retries(self, error: EvalError, *, has_several_workers: bool = False) -> int:
        """Return how often a failure of this kind is retried.

        With several workers any candidate can have changed a deciding file, so that failure is
        retried as well.
        """
        if error.code == DECIDING_FILE_CHANGED:
            return FAULT_RETRIES - 1 if has_several_workers else 0
        if error.code in ALWAYS_RETRIED:
            return max(self.retries, FAULT_RETRIES)
        retried = self.retried or "commands"
        is_fault = error.retryable and error.code != EVAL_TIMEOUT
        is_covered = (
            retried == "all" or is_fault or (retried == "commands" and error.code in _COMMAND_CODES)
        )
        return self.retries if is_covered else 0

    def backoff_seconds(self, failures: int) -> float:
        """Return the seconds to wait before the next attempt, after that many failures."""
        return min(_LONGEST_BACKOFF_SECONDS, self.first_backoff_seconds * 2 ** (failures - 1))


@dataclass(frozen=True, slots=True)
class Record:
    """Record the outcome, which is the candidate's own: a score, or a failure that it caused."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Put the work back into the queue; with `delay_seconds` None, for the next invocation."""

    reason: str
    delay_seconds: float | None = 0.0
    is_after_outage: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep the failure until the other evaluations have ended. `is_outage`: it counts towards the
    consecutive outages after which the run stops starting work."""

    is_outage: bool


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause the run because of this failure; its evaluation or sweep runs again later."""

    code: str


@dataclass(frozen=True, slots=True)
class CheckRoot:
    """Run this command on the root commit, and ask again with the answer in `root_works`."""

    command: RootCommand


Action = Record | Retry | Hold | Pause | CheckRoot


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The facts around a failure.

    Attributes:
        failures: Failures of this evaluation that count against the same retries, with this one.
        has_several_workers: Whether other evaluations ran at the same time.
        is_cancelled: Whether the user interrupted the run, and with it the evaluation.
        has_passing_peer: Whether one of the search's `peers` passed, or failed in a way that only
            its candidate can cause: then the machine and the services worked.
        has_barrier: Whether the search waits for all its evaluations before it decides.
        is_local: Whether evaluations run on this machine, where the root can be checked.
        root_works: The answers of the root checks so far.
    """

    failures: int = 1
    has_several_workers: bool = False
    is_cancelled: bool = False
    has_passing_peer: bool = False
    has_barrier: bool = False
    is_local: bool = True
    root_works: Mapping[RootCommand, bool] = field(default_factory=dict)


def decide_outcome(
    error: EvalError | None, rules: FailureRules, circumstances: Circumstances
) -> Action:
    """Decide about an evaluation that has ended; `error` is None if it was scored."""
    if error is None:
        return Record()
    if circumstances.is_cancelled:
        # The same Ctrl-C may have ended the evaluation, so its failure is not an answer.
        return Retry(INTERRUPTED, delay_seconds=None)
    if error.code == CAP_REACHED:
        return Retry(CAP_REACHED)
    several = circumstances.has_several_workers
    if circumstances.failures <= rules.count_retries(error, has_several_workers=several):
        return Retry(error.code, rules.backoff_seconds(circumstances.failures))
    if _root_commands(error.code):
        # On other machines a passing peer is the better witness: this one may lack the tools.
        if circumstances.has_passing_peer and not circumstances.is_local:
            return Record()
        answer = _check_root(error.code, circumstances)
        if isinstance(answer, CheckRoot):
            return answer
        return Record() if answer else Hold(is_outage=True)
    if error.code in OUTAGE_CODES:
        return Hold(is_outage=True)
    if error.code in UNCLEAR_CODES and (
        circumstances.has_barrier or not circumstances.has_passing_peer
    ):
        return Hold(is_outage=False)
    return Record()


def decide_held(
    code: str, earlier_pauses: int, circumstances: Circumstances, *, goes_on: bool
) -> Record | Retry | Pause | CheckRoot:
    """Decide about a failure that was held until the other evaluations had ended.

    Args:
        code: The code of the failure.
        earlier_pauses: How often this evaluation was put back into the queue after an outage.
        circumstances: The facts now; `root_works` holds answers of this moment.
        goes_on: Whether the run may start work again; if not, the root is not checked.
    """
    has_peer = circumstances.has_passing_peer
    is_command = bool(_root_commands(code))
    if has_peer and (code in UNCLEAR_CODES or (is_command and not circumstances.is_local)):
        return Record()
    root_works = False
    if is_command and goes_on:
        answer = _check_root(code, circumstances)
        if isinstance(answer, CheckRoot):
            return answer
        root_works = answer
    if circumstances.is_cancelled:
        return Retry(code, delay_seconds=None)
    if earlier_pauses + 1 >= MAX_PAUSES and (has_peer or root_works):
        return Record()
    return Retry(code, is_after_outage=True) if root_works else Pause(code)


def decide_measurement(
    problem: EvalError | None,
    rules: FailureRules,
    circumstances: Circumstances,
    *,
    is_measured: bool,
) -> Record | Retry | Pause | CheckRoot:
    """Decide about a held-out sweep that has ended. A fault never fails the candidate.

    Args:
        problem: How it failed, None if it has results.
        rules: The user's rules for failures.
        circumstances: The facts around it.
        is_measured: Whether the sweep itself ended and reported the problem.
    """
    if problem is None:
        return Record()
    if circumstances.is_cancelled:
        return Retry(INTERRUPTED, delay_seconds=None)
    several = circumstances.has_several_workers
    if circumstances.failures <= rules.count_retries(problem, has_several_workers=several):
        return Retry(problem.code, rules.backoff_seconds(circumstances.failures))
    if not is_measured or problem.code in OUTAGE_CODES:
        return Pause(problem.code)
    if problem.code in SWEEP_CODES:
        if "sweep" not in circumstances.root_works:
            return CheckRoot("sweep")
        if not circumstances.root_works["sweep"]:
            return Pause(problem.code)
    return Record()


def _root_commands(code: str) -> list[RootCommand]:
    """Return the commands of the user that could have caused this failure, in order."""
    commands: list[RootCommand] = []
    if code in SWEEP_CODES:
        commands.append("sweep")
    if code in TEST_CODES:
        commands.append("tests")
    return commands


def _check_root(code: str, circumstances: Circumstances) -> bool | CheckRoot:
    """Return whether all these commands work on the root, or the next one to check."""
    for command in _root_commands(code):
        if command not in circumstances.root_works:
            return CheckRoot(command)
        if not circumstances.root_works[command]:
            return False
    return True
