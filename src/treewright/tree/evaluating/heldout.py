"""Sweeping a commit on held-out configs, which play no part in selection.

A held-out sweep depends on its request alone, so it runs wherever evaluations run.
`run.confirmation` decides with its results.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import msgspec

from treewright.kernel.storage import artifacts
from treewright.kernel.storage.artifacts import Artifact
from treewright.tree.config import Config
from treewright.tree.evaluating import contexts
from treewright.tree.guard import shared_paths
from treewright.tree.guard.baselines import DecidingFiles, KeptFile
from treewright.tree.guard.commands import CommandContext, ConfigRange, run_sweep
from treewright.tree.guard.isolation import Isolation
from treewright.tree.guard.root_checkout import RootVersion
from treewright.tree.guard.seals import Distrusted
from treewright.tree.records import layout
from treewright.tree.repository.worktrees import Worktrees

CANCELLED = "cancelled"


class HeldoutRequest(msgspec.Struct, frozen=True, tag="heldout"):
    """The request for a held-out sweep.

    `eval_id` names the worktree: that of an evaluation, or one made for a node. A dry run makes its
    numbers from `idea` and `parent_heldout`.
    """

    tree_run_id: str
    eval_id: str
    attempt: int
    parent_node_id: str
    commit: str
    log_dir: str
    config_start: int
    config_stop: int
    repo: str
    run_dir: str
    config: Config
    protected_paths: list[str]
    seed: int
    owner: str
    root_commit: str
    idea: bytes = b""
    parent_heldout: bytes = b""
    slot: int | None = None

    @property
    def name(self) -> str:
        """The name of the log and of the results."""
        return layout.heldout(self.eval_id.removesuffix(layout.heldout("")))


class HeldoutOutcome(msgspec.Struct, frozen=True):
    """The results, or the reason code of a failure."""

    results: KeptFile | None = None
    problem: str = ""
    seconds: float = 0.0


def measure(
    request: HeldoutRequest, cancel: threading.Event | None, deciding: DecidingFiles | None
) -> HeldoutOutcome:
    """Sweep the commit in a worktree that has exactly its files."""
    started = time.monotonic()
    trees = Worktrees(Path(request.repo), Path(request.run_dir), request.tree_run_id)
    log_dir = Path(request.run_dir) / request.log_dir
    shared_paths.restore(trees.run_dir, log_dir.parent, log_dir)
    worktree = trees.pristine_candidate(request.eval_id, request.commit)
    log_dir.mkdir(parents=True, exist_ok=True)
    context = CommandContext(
        worktree,
        log_dir,
        request.seed,
        request.owner,
        cancel,
        contexts.secret_variables(request.config),
        contexts.limits(request.config),
        contexts.slot_variables(request.config, request.slot),
        Isolation.of(request.config, trees.repo, trees.run_dir),
        RootVersion(trees.repo, request.root_commit, request.protected_paths),
        deciding,
    )
    kept, problem = _sweep(request, context)
    return HeldoutOutcome(kept, problem, time.monotonic() - started)


def _sweep(request: HeldoutRequest, context: CommandContext) -> tuple[KeptFile | None, str]:
    configs = ConfigRange(request.config_start, request.config_stop)
    try:
        run = run_sweep(request.config.sweep, context, configs, request.name)
    except Distrusted as problem:
        return None, problem.code
    if run.done.cancelled:
        return None, CANCELLED
    if run.results is None:
        return None, "sweep_timeout" if run.done.timed_out else "sweep_failed"
    kept = keep(request, run.results, "held-out sweep")
    if context.deciding is not None:
        context.deciding.keep_in_memory(kept)
    return kept, ""


def keep(request: HeldoutRequest, data: bytes, how: str) -> KeptFile:
    name = request.name
    kept: Artifact = artifacts.keep(data, Path(request.run_dir), f"{name}.csv", f"{how} {name}")
    return KeptFile(kept, data)
