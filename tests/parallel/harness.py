"""Run searches in this process with an executor that the test defines."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from treewright.kernel.executors.protocol import Done, Worker, WorkerLost
from treewright.tree.evaluating.request import EvalRequest, HeldoutRequest
from treewright.tree.records.model import EvalError, EvalOutcome
from treewright.tree.run.cleanup import Retention
from treewright.tree.run.coordinator import Coordinator
from treewright.tree.run.creation import Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.outcomes import FailureRules
from treewright.tree.run.parallelism import Parallelism

DRY = Shape(
    ideas_per_node=5,
    beam_width=3,
    max_depth=2,
    sweep_config_limit=8,
    dedupe_scope="none",  # every node tries all ideas, so that depths are wide
    dry_run=True,
)
REAL = Shape(ideas_per_node=4, beam_width=2, max_depth=2, sweep_config_limit=8, confirm_configs=4)
REAL_FLAGS = (
    "--ideas-per-node", "4", "--beam-width", "2", "--max-depth", "2",
    "--sweep-config-limit", "8", "--confirm-configs", "4", "--until-done",
    "--no-preflight",  # a gate in the sweep would block the preflight; test_outages tests it
)  # fmt: skip
Work = Callable[[EvalRequest], EvalOutcome]


def search(
    repo: Path,
    run_id: str,
    shape: Shape = DRY,
    *,
    make_executor: Callable[[Work], object] | None = None,
    policy: FailureRules | None = None,
    parallelism: Parallelism | None = None,
    retention: Retention | None = None,
    observer: Callable[[object], None] = lambda _: None,
) -> Path:
    """Run to the end and return the run directory."""
    request = RunRequest(
        repo,
        run_id,
        shape=shape,
        preflight=False,
        retention=retention or Retention(),
        failure_rules=policy or FailureRules(first_backoff_seconds=0.0),
        parallelism=parallelism or Parallelism(),
    )
    with open_run(request, observer) as coordinator:
        _advance_to_the_end(coordinator, make_executor)
        return coordinator.store.run_dir


def _advance_to_the_end(
    coordinator: Coordinator, make_executor: Callable[[Work], object] | None
) -> None:
    if make_executor is not None:
        coordinator.make_executor = make_executor  # pyright: ignore[reportAttributeAccessIssue]
    coordinator.finish()


class Shuffled:
    """An executor that completes in a random order and injects faults.

    Lost before any work, lost after all work, a fault of the machine, a failure that can pass:
    each at most twice for an evaluation, so that it passes in the end.
    """

    def __init__(self, work: Work, seed: int, capacity: int, faults: float) -> None:
        self.capacity = capacity
        self._work = work
        self._draw = random.Random(seed)
        self._faults = faults
        self._waiting: list[EvalRequest] = []
        self._injected: dict[str, int] = {}
        self.most_under_way = 0

    def submit(self, request: EvalRequest) -> None:
        self._waiting.append(request)
        self.most_under_way = max(self.most_under_way, len(self._waiting))
        assert len(self._waiting) <= self.capacity

    def next_done(self, timeout: float | None = None) -> Done | None:
        if not self._waiting or (timeout == 0 and self._draw.random() < 0.5):
            return None
        request = self._waiting.pop(self._draw.randrange(len(self._waiting)))
        worker = Worker(f"shuffled-{self._draw.randrange(9)}", os.getpid())
        count = self._injected.get(request.eval_id, 0)
        if count < 2 and self._draw.random() < self._faults:
            self._injected[request.eval_id] = count + 1
            return self._fault(request, worker)
        return Done(request, self._work(request), worker=worker)

    def _fault(self, request: EvalRequest, worker: Worker) -> Done:
        kind = self._draw.randrange(4)
        if kind == 0:
            return Done(request, None, WorkerLost("injected"))
        if kind == 1:
            self._work(request)
            return Done(request, None, WorkerLost("injected, with the work done"))
        if kind == 2:
            return Done(request, None, OSError("injected"), worker)
        if isinstance(request, HeldoutRequest):
            return Done(request, None, OSError("injected"), worker)
        error = EvalError("llm_unavailable", "injected", retryable=True)
        return Done(request, EvalOutcome(error=error), worker=worker)

    def close(self) -> None:
        assert not self._waiting or self._draw is None


def eventually(condition: Callable[[], object], what: str, seconds: float = 120.0) -> None:
    """Wait for an effect of another process; fail if it never happens."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)
