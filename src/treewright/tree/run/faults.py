"""Which failures say nothing about a candidate: a fault is not a verdict.

An endpoint that is down, a key that expired, a machine that is busy would fail every
candidate alike. What failed so is neither recorded as failed nor learned from: it goes
back to the queue, and the run pauses until somebody has put it right.
"""

from __future__ import annotations

import errno
from typing import TypeGuard

from treewright.kernel.errors import TreewrightError
from treewright.kernel.executors.base import WorkerLost
from treewright.kernel.procs import process
from treewright.llm.usage import Usage
from treewright.tree.records import events as ev
from treewright.tree.records.model import UNSET, EvalError, EvalOutcome, Evaluation
from treewright.tree.repository.git import GitKilled

WORKER_LOST = "worker_lost"
MACHINE_BUSY = "machine_busy"
INTERNAL_ERROR = "internal_error"
CANCELLED = "cancelled"
QUARANTINED = "quarantined"

OUTAGES = frozenset(
    {
        "llm_unreachable", "llm_unavailable", "llm_timeout", "llm_no_key", "llm_denied",
        "agent_missing", MACHINE_BUSY, CANCELLED,
    }
)  # fmt: skip
"""Never the candidate's doing, as far as anybody can tell."""

UNCLEAR = frozenset(
    {
        WORKER_LOST, INTERNAL_ERROR, "llm_failed", "agent_failed", "agent_timeout",
        "parent_sweep_failed",
    }
)  # fmt: skip
"""The candidate's doing if others of its depth got through, an outage if none did."""

OF_THE_SWEEP = frozenset({"sweep_failed", "sweep_timeout", "eval_timeout"})
"""The candidate's doing if the sweep works on the root, an outage if it does not."""

OF_THE_TESTS = frozenset({"tests_failed", "tests_timeout", "eval_timeout"})
"""Likewise, if the tests pass on the root."""

MOST_PAUSES = 3
"""So often an evaluation may pause a run whose other evaluations get through."""


_FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
_LOSSES_OF_A_SUSPECT = 2
_MOST_LOSSES = 2


class Paused(TreewrightError):
    """The search could not go on for reasons that are not the candidates'."""


class Halted(Exception):
    """Somebody told the run to stop; what was under way is done."""


def is_suspect(evaluation: Evaluation) -> bool:
    """Coordinators died while it ran; whether because of it shows when it runs alone."""
    return evaluation.lost_alone + evaluation.lost_together >= _LOSSES_OF_A_SUSPECT


def after_loss(
    evaluation: Evaluation, company: int | None, spent: Usage, roles: dict[str, Usage]
) -> ev.Requeued | ev.Failed:
    """Return the event for an evaluation that was running when the owner before this one died.

    It goes back to the queue. If an owner died twice while only this evaluation ran, it is
    quarantined instead. `company` is how many others ran; None if the search did not die by itself
    (it was taken over, or the machine restarted), which is no reason to doubt a candidate.
    """
    if company == 0 and evaluation.lost_alone + 1 >= _MOST_LOSSES:
        error = EvalError(
            QUARANTINED,
            f"the search died {_MOST_LOSSES} times while only this candidate ran, on a machine "
            "that did not restart; it is not tried again unless you bring it back: "
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


def is_full_disk(error: BaseException | None) -> TypeGuard[OSError]:
    return isinstance(error, OSError) and error.errno in _FULL_DISK


def as_error(error: BaseException | None) -> EvalError:
    """What a worker raised, as the failure of an evaluation. Worth another try."""
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


def got_through(evaluation: Evaluation) -> bool:
    """Whether it has an outcome that is its own."""
    error = evaluation.error
    failed_by_itself = error is not None and error.code not in UNCLEAR
    return evaluation.status == "completed" or (evaluation.status == "failed" and failed_by_itself)


def explain_pause(where: str, reasons: dict[str, list[str]], examples: dict[str, str]) -> str:
    """One line: what failed, how often, and that nothing is lost. `reasons` is code -> ids."""
    count = sum(map(len, reasons.values()))
    what = "; ".join(f"{code}: {examples[code]}" for code in sorted(reasons))
    subject = "1 evaluation" if count == 1 else f"{count} evaluations"
    return (
        f"paused {where}: {subject} could not be made ({what}). Nothing was decided "
        "and these ideas stay untried; put that right and run the same command again"
    )


def explain_unmeasured(where: str, problems: dict[str, str]) -> str:
    """The same for held-out sweeps; `problems` is evaluation -> code."""
    eval_id, code = min(problems.items())
    if code in OF_THE_SWEEP:
        why = (
            f"the sweep does not work on the root commit either, so {eval_id} was not judged by it"
        )
    else:
        why = f"{eval_id} could not be measured on the held-out configs ({code})"
    return f"paused {where}: {why}; put that right and run the same command again"
