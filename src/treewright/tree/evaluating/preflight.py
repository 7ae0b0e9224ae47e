"""Does the sweep work at all? Tried on the root, before a candidate is blamed for it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel import untrusted
from treewright.kernel.errors import LeaseLost
from treewright.tree.config import Config
from treewright.tree.deciding import objectives
from treewright.tree.deciding.results import Results
from treewright.tree.evaluating import sweep
from treewright.tree.evaluating.sweep import CommandContext, ConfigRange, SweepError
from treewright.tree.evaluating.wording import explain_end
from treewright.tree.records import layout
from treewright.tree.repository.worktrees import Worktrees


@dataclass(frozen=True, slots=True)
class Preflight:
    """Sweeps one config of one commit, in a worktree that is removed again."""

    config: Config
    worktrees: Worktrees
    owner: str = ""
    cancel: threading.Event | None = None

    def check(self, commit: str, config_id: int) -> Results:
        """What the sweep gives for `config_id`; a SweepError says why that is no sound row."""
        log_dir = self.worktrees.run_dir / layout.sweep_directory(layout.PREFLIGHT)
        log_dir.mkdir(parents=True, exist_ok=True)
        still_ours = True
        try:
            worktree = self.worktrees.add_candidate(layout.PREFLIGHT, commit)
            context = sweep.root_context(
                self.config, self.worktrees, worktree, commit, log_dir, self.owner, self.cancel
            )
            one = ConfigRange(config_id, config_id + 1)
            done, results = sweep.run_sweep(self.config.sweep, context, one)
            if done.cancelled:
                raise KeyboardInterrupt
            if not done.ok:
                said = explain_end(done, "the sweep", log_dir / layout.SWEEP_LOG)
                raise SweepError(f"{said} (tried on the root commit, config_id {config_id})")
            return self._checked(results, context, config_id)
        except LeaseLost:
            still_ours = False  # the next owner may be trying its sweep in the same place
            raise
        finally:
            if still_ours:
                self.worktrees.remove_candidate(layout.PREFLIGHT)
                untrusted.remove_tree(log_dir)

    def _checked(self, results: Path, context: CommandContext, config_id: int) -> Results:
        try:
            data = sweep.read_results_file(self.config.sweep, results, context)
        except untrusted.NotPlain as problem:
            raise SweepError(f"the sweep of the root commit: {problem}") from None
        found = objectives.read(data, self.config.metrics, {config_id}.__contains__)
        if config_id not in found.sound_ids:
            example = (found.problems.examples or [f"no row for config_id {config_id}"])[0]
            raise SweepError(
                f"the sweep of the root commit gives no sound row for config_id {config_id}: "
                f"{example}"
            )
        return found
