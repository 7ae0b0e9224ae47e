"""The request for one evaluation, and the error of a candidate that failed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from treewright.tree.config import Config
from treewright.tree.deciding.caps import Allowance
from treewright.tree.guard.baselines import KeptFile
from treewright.tree.records.model import EvalError

OUTSIDE_BLOCK_CHANGED = "outside_block_changed"
ONLY_SEEDS_CHANGED = "only_seeds_changed"
WORKTREE_DAMAGED = "worktree_damaged"
EVAL_TIMEOUT = "eval_timeout"


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
    timeout_seconds: float | None = None
    root_commit: str = ""
    allowance: Allowance | None = None
    slot: int | None = None


class Rejected(Exception):
    """The candidate failed: its outcome has this error."""

    def __init__(self, code: str, message: str, log: Path | None = None, retryable: bool = False):
        super().__init__(message)
        self.error = EvalError(code, message, retryable, str(log) if log else None)
