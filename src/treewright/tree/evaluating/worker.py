"""The work of executors: evaluating an idea, or sweeping a commit on held-out configs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from treewright.kernel.procs.cancellation import Deadline
from treewright.tree.evaluating import simulation
from treewright.tree.evaluating.evaluation import Evaluation
from treewright.tree.evaluating.known_results import Known
from treewright.tree.evaluating.measuring import measure_heldout
from treewright.tree.evaluating.request import EvalRequest, Outcome, Request
from treewright.tree.guard.baselines import DecidingFiles

Work = Callable[[Request], Outcome]


class Worker:
    """Executes the requests of a run; one instance serves all threads.

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

    def __call__(self, request: Request) -> Outcome:
        if isinstance(request, EvalRequest):
            if self._dry_run:
                return simulation.simulate(request)
            deadline = Deadline(self._cancel, request.timeout_seconds)
            return Evaluation(request, deadline, self._deciding, self.known).run()
        if self._dry_run:
            return simulation.simulate_heldout(request)
        return measure_heldout(request, self._cancel, self._deciding)
