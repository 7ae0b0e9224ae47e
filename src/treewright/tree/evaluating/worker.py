"""The work of executors: evaluating an idea, or sweeping a commit on held-out configs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from treewright.kernel.executors.protocol import WorkerLost
from treewright.tree.evaluating import heldout, simulation
from treewright.tree.evaluating.evaluation import Evaluator
from treewright.tree.evaluating.heldout import HeldoutOutcome, HeldoutRequest
from treewright.tree.evaluating.known_results import Known
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.guard.baselines import DecidingFiles
from treewright.tree.records import usage_log
from treewright.tree.records.model import EvalOutcome

Request = EvalRequest | HeldoutRequest
Outcome = EvalOutcome | HeldoutOutcome
Work = Callable[[Request], Outcome]


class EvaluationLost(WorkerLost):
    """An evaluation was lost with its worker; `answers` are the model answers it had reported."""

    def __init__(self, message: str, answers: Sequence[usage_log.Answer]) -> None:
        super().__init__(message)
        self.answers = answers


class Worker:
    """Executes the requests of a run.

    Args:
        cancel: Ends the work when it is set. A fence raises if the run has another owner.
        deciding: The baselines of the run, which candidates must not change.
        known: Results of code that was swept before.
        dry_run: Simulate instead of running anything.
    """

    def __init__(
        self,
        cancel: threading.Event,
        deciding: DecidingFiles | None = None,
        known: Known | None = None,
        *,
        dry_run: bool = False,
    ) -> None:
        self.known = known
        self._cancel = cancel
        self._deciding = deciding
        self._dry_run = dry_run
        self._evaluate = simulation.simulate if dry_run else Evaluator(cancel, deciding, known)

    def __call__(self, request: Request) -> Outcome:
        if isinstance(request, EvalRequest):
            return self._evaluate(request)
        if self._dry_run:
            return simulation.simulate_heldout(request)
        return heldout.measure(request, self._cancel, self._deciding)
