"""Sweeps of the root commit, for its baseline and for checks of its noise."""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.tree.config import Config
from treewright.tree.evaluating.command_logs import explain_end, keep_log, last_log_lines
from treewright.tree.evaluating.contexts import repeat_seed, root_context
from treewright.tree.evaluating.perturbation import Perturbation
from treewright.tree.guard.commands import ConfigRange, run_sweep
from treewright.tree.guard.seals import Distrusted
from treewright.tree.records import layout
from treewright.tree.repository.worktrees import Worktrees


class RootSweepFailed(TreewrightError):
    """The sweep of the root left no results, or there was nothing to perturb."""


@dataclass(frozen=True, slots=True)
class RootSweep:
    """Sweeps of one commit, each in a new worktree that is removed afterwards."""

    config: Config
    worktrees: Worktrees
    commit: str
    owner: str = ""
    cancel: threading.Event | None = None

    def last_log_lines(self) -> str:
        """Return the last lines of the first sweep's log, and the path of the kept log."""
        log = self._log_dir / layout.SWEEP_LOG
        said = last_log_lines(log)
        return (f"; it said: {said}" if said else "") + keep_log(self.worktrees, log)

    @property
    def _log_dir(self) -> Path:
        return self.worktrees.run_dir / layout.sweep_directory(layout.ROOT_BASELINE)

    def run(
        self,
        configs: ConfigRange,
        number: int = 1,
        *,
        is_seeded: bool = True,
        perturbation: Perturbation | None = None,
    ) -> bytes:
        """Sweep the commit and return what the sweep wrote.

        Args:
            configs: The configs to sweep.
            number: The repeat: it decides TREEWRIGHT_SEED, and the name of the log.
            is_seeded: Without it, TREEWRIGHT_SEED is not set.
            perturbation: Applied to the checkout before the sweep.

        Raises:
            RootSweepFailed: The sweep left no results, or there is no code to perturb.
        """
        log_dir = self._log_dir
        log_dir.mkdir(parents=True, exist_ok=True)
        try:
            worktree = self.worktrees.add_candidate(layout.ROOT_BASELINE, self.commit)
            context = root_context(
                self.config, self.worktrees, worktree, self.commit, log_dir, self.owner, self.cancel
            )
            seed = repeat_seed(self.config.seed, number) if is_seeded else None
            context = dataclasses.replace(context, seed=seed)
            if perturbation is not None and not perturbation.apply(worktree):
                raise RootSweepFailed("there is no Python code that a candidate may change")
            name = layout.repeat("sweep", number)
            try:
                run = run_sweep(self.config.sweep, context, configs, name)
            except Distrusted as problem:
                raise RootSweepFailed(f"the baseline sweep: {problem}") from None
            if run.done.cancelled:
                raise KeyboardInterrupt
            if not run.done.ok:
                said = explain_end(run.done, "the baseline sweep", run.log)
                raise RootSweepFailed(said + keep_log(self.worktrees, run.log))
            if run.results is None:
                raise RootSweepFailed(
                    "the baseline sweep wrote no results: it has to write one CSV row per config "
                    "to the path in TREEWRIGHT_RESULTS_CSV "
                    f"(docs/sweep-contract.md){self.last_log_lines()}"
                )
            return run.results
        finally:
            self.worktrees.remove_candidate(layout.ROOT_BASELINE)
