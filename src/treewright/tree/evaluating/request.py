"""The requests that executors get, their outcomes, and the error of a candidate that failed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from treewright.kernel.storage import artifacts
from treewright.tree.config import Config
from treewright.tree.deciding.caps import Allowance
from treewright.tree.guard.baselines import KeptFile
from treewright.tree.records import layout
from treewright.tree.records.model import EvalError, EvalOutcome

OUTSIDE_BLOCK_CHANGED = "outside_block_changed"
ONLY_SEEDS_CHANGED = "only_seeds_changed"
WORKTREE_DAMAGED = "worktree_damaged"
EVAL_TIMEOUT = "eval_timeout"
CANCELLED = "cancelled"


class EvalRequest(msgspec.Struct, frozen=True, tag="evaluate"):
    """Everything that an evaluation depends on. Paths are absolute, on the worker's machine."""

    tree_run_id: str
    eval_id: str
    attempt: int
    parent_node_id: str
    parent_commit: str
    idea_path: str
    idea: bytes
    parent_context: str
    repo: str
    run_dir: str
    config: Config
    protected_paths: list[str]
    expected_ids: list[int]
    sweep_config_limit: int | None
    parent_baseline: KeptFile
    root_baseline: KeptFile
    commit_time: int
    seed: int
    owner: str
    root_commit: str
    timeout_seconds: float | None = None
    allowance: Allowance | None = None
    slot: int | None = None


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


def keep_heldout(request: HeldoutRequest, data: bytes, how: str) -> KeptFile:
    """Keep the results of a held-out sweep in the run; `how` says how they were made."""
    name = request.name
    kept = artifacts.keep(data, Path(request.run_dir), f"{name}.csv", f"{how} {name}")
    return KeptFile(kept, data)


Request = EvalRequest | HeldoutRequest
Outcome = EvalOutcome | HeldoutOutcome


class Rejected(Exception):
    """The candidate failed: its outcome has this error."""

    def __init__(self, code: str, message: str, log: Path | None = None, retryable: bool = False):
        super().__init__(message)
        self.error = EvalError(code, message, retryable, str(log) if log else None)
