"""Faults of the machine, of workers and of services: as records, and in messages."""

from __future__ import annotations

import errno
from typing import TypeGuard

from treewright.kernel.errors import LeaseLost, StorageError, TreewrightError, UsageError
from treewright.kernel.executors.protocol import WorkerLost
from treewright.kernel.procs import process
from treewright.llm.usage import Usage
from treewright.tree.evaluating.request import HeldoutOutcome
from treewright.tree.records import events as ev
from treewright.tree.records.model import UNSET, EvalError, EvalOutcome, Evaluation
from treewright.tree.repository.git import GitKilled
from treewright.tree.run.outcomes import (
    INTERNAL_ERROR,
    MACHINE_BUSY,
    QUARANTINED,
    SWEEP_CODES,
    UNCLEAR_CODES,
    WORKER_LOST,
)

_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_SUSPICIOUS_LOSSES = 2
"""An evaluation that ran during this many deaths of an owner runs alone from then on."""
_MAX_LOSSES_ALONE = 2
"""An evaluation that ran alone during this many deaths of an owner is quarantined."""


class Paused(TreewrightError):
    """An outage, and no candidate, keeps the run from going on. The user repeats the command."""


class Halted(Exception):
    """The user or a cap ended the run; the evaluations under way have ended."""


class StrictFailure(TreewrightError):
    """An evaluation failed in a run with --strict-fail."""


def is_fatal(error: BaseException | None) -> TypeGuard[BaseException]:
    """Return whether the error says nothing about the candidate and would hit the next one too."""
    return isinstance(error, StorageError | LeaseLost | UsageError) or is_full_disk(error)


def is_reported(error: BaseException | None) -> TypeGuard[BaseException]:
    """Return whether the error ends the run with its own message, once it is not retried."""
    return isinstance(error, TreewrightError) and not isinstance(error, GitKilled)


def is_full_disk(error: BaseException | None) -> TypeGuard[OSError]:
    return isinstance(error, OSError) and error.errno in _FULL_DISK


def is_suspect(evaluation: Evaluation) -> bool:
    """Return whether coordinators died while it ran; such an evaluation runs alone."""
    return evaluation.lost_alone + evaluation.lost_together >= _SUSPICIOUS_LOSSES


def has_own_outcome(evaluation: Evaluation) -> bool:
    """Return whether it was scored, or failed in a way that only the candidate can cause."""
    error = evaluation.error
    failed_by_itself = error is not None and error.code not in UNCLEAR_CODES
    return evaluation.status == "completed" or (evaluation.status == "failed" and failed_by_itself)


def decide_loss(
    evaluation: Evaluation, company: int | None, spent: Usage, roles: dict[str, Usage]
) -> ev.Requeued | ev.Failed:
    """Decide about an evaluation that was running when the previous owner died; return the event.

    It goes back to the queue. If an owner died twice while only this evaluation ran, it is
    quarantined instead.

    Args:
        evaluation: The evaluation.
        company: The number of other evaluations that ran; None if the search did not die by itself
            (it was taken over, or the machine restarted), which is no reason to doubt a candidate.
        spent: The usage of the lost attempt.
        roles: The same by role.
    """
    if company == 0 and evaluation.lost_alone + 1 >= _MAX_LOSSES_ALONE:
        error = EvalError(
            QUARANTINED,
            f"the search died {_MAX_LOSSES_ALONE} times while only this candidate ran, on a "
            "machine that did not restart; it is not tried again unless you bring it back: "
            f"treewright steer RUN reopen {evaluation.eval_id}",
        )
        return ev.Failed(
            eval_id=evaluation.eval_id,
            attempt=evaluation.attempt,
            outcome=EvalOutcome(error=error, usage=spent, roles=roles or UNSET),
        )
    return ev.Requeued(
        eval_id=evaluation.eval_id,
        attempt=evaluation.attempt,
        reason="lost",
        usage=spent,
        company=company,
        roles=roles or UNSET,
    )


def as_error(error: BaseException | None) -> EvalError:
    """Return an exception of a worker as the failure of an evaluation; it can be retried."""
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, WorkerLost):
        code, message = WORKER_LOST, str(error)
    elif isinstance(error, OSError) and error.errno in process.SHORTAGES:
        code = MACHINE_BUSY
    elif isinstance(error, GitKilled):
        code, message = MACHINE_BUSY, str(error)
    else:
        code = INTERNAL_ERROR
    return EvalError(code, message, retryable=True)


def as_problem(outcome: HeldoutOutcome | None, error: BaseException | None) -> EvalError | None:
    """Return the failure of a held-out sweep; None if the sweep has results."""
    if outcome is None:
        return as_error(error)
    return EvalError(outcome.problem, outcome.problem) if outcome.problem else None


def explain_pause(where: str, failures: dict[str, list[EvalError]]) -> str:
    """Return one line: which failures, how many, and that nothing is lost.

    Args:
        where: The position of the search.
        failures: The failures that paused the run, by code.
    """
    count = sum(map(len, failures.values()))
    causes = "; ".join(f"{code}: {failures[code][0].message}" for code in sorted(failures))
    subject = "1 evaluation" if count == 1 else f"{count} evaluations"
    return (
        f"paused {where}: {subject} could not be made ({causes}). Nothing was decided "
        "and these ideas stay untried; put that right and run the same command again"
    )


def explain_unmeasured(where: str, problems: dict[str, str]) -> str:
    """Return the same line for held-out sweeps; `problems` maps evaluations to codes."""
    eval_id, code = min(problems.items())
    if code in SWEEP_CODES:
        why = (
            f"the sweep does not work on the root commit either, so {eval_id} was not judged by it"
        )
    else:
        why = f"{eval_id} could not be measured on the held-out configs ({code})"
    return f"paused {where}: {why}; put that right and run the same command again"
