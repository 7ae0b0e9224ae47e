"""Run searches without a barrier in this process, on executors that the tests define."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.decisions import decisions
from treewright.search import policies
from treewright.tree.records.model import Manifest
from treewright.tree.run.creation import BEAM, PolicyChoice, Shape
from treewright.tree.run.open import RunRequest, open_run
from treewright.tree.run.outcomes import FailureRules
from treewright.tree.run.parallelism import Parallelism

POLICIES = [name for name in policies.known() if name != BEAM]
LOOKAHEAD = 4
DRY = Shape(
    ideas_per_node=2,
    max_depth=3,
    sweep_config_limit=8,
    confirm_configs=4,
    max_total_idea_evals=14,
    dedupe_scope="none",  # every node may try every idea, so that trees are deep
    dry_run=True,
)
REAL = Shape(
    ideas_per_node=2,
    max_depth=2,
    sweep_config_limit=8,
    confirm_configs=4,
    max_total_idea_evals=6,
    dedupe_scope="none",
)


def steady(
    repo: Path,
    run_id: str,
    policy: str | None,
    shape: Shape = DRY,
    *,
    order: Any = None,
    lookahead: int | None = LOOKAHEAD,
    make_executor: Callable[..., Any] | None = None,
    failures: FailureRules | None = None,
    parallelism: Parallelism | None = None,
    observer: Callable[[object], None] = lambda _: None,
) -> Manifest:
    """Run a search to its end; without a policy, continue the run."""
    live = order == "live" or policy is None
    request = RunRequest(
        repo,
        run_id,
        shape=shape if policy else Shape(),
        choosing=PolicyChoice(policy, order=order, lookahead=None if live else lookahead),
        preflight=False,
        failure_rules=failures or FailureRules(first_backoff_seconds=0.0),
        parallelism=parallelism or Parallelism(),
    )
    with open_run(request, observer) as coordinator:
        if make_executor is not None:
            coordinator.make_executor = make_executor
        coordinator.finish()
        return coordinator.manifest


def as_bytes(run_dir: Path) -> bytes:
    """Return every decision of a manifest as bytes."""
    found = decisions(run_dir)
    found.pop("tree_run_id")
    return json.dumps(found, indent=1).replace(run_dir.name, "RUN").encode()
