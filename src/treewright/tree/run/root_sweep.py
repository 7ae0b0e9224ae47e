"""Sweeping the root commit: for its baseline, and to see whether it gives the same twice."""

from __future__ import annotations

import dataclasses
import threading
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.kernel.storage import untrusted
from treewright.tree.config import Config
from treewright.tree.evaluating import sweep
from treewright.tree.evaluating.perturbation import Perturbation
from treewright.tree.evaluating.sweep import CommandContext, ConfigRange
from treewright.tree.evaluating.wording import explain_end, keep_log, last_words
from treewright.tree.records import layout
from treewright.tree.repository.worktrees import Worktrees


class RootSweepFailed(TreewrightError):
    """The sweep of the root left no results, or there was nothing to perturb."""


@dataclass(frozen=True, slots=True)
class RootSweep:
    """Sweeps one commit, each time in a worktree of its own that is removed again."""

    config: Config
    worktrees: Worktrees
    commit: str
    owner: str = ""
    cancel: threading.Event | None = None

    def last_words(self) -> str:
        """The last lines that its first sweep said, and where its log is kept."""
        log = self._log_dir / layout.SWEEP_LOG
        said = last_words(log)
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
            context = sweep.root_context(
                self.config, self.worktrees, worktree, self.commit, log_dir, self.owner, self.cancel
            )
            seed = sweep.repeat_seed(self.config.seed, number) if is_seeded else None
            context = dataclasses.replace(context, seed=seed)
            if perturbation is not None and not perturbation.apply(worktree):
                raise RootSweepFailed("there is no Python code that a candidate may change")
            name = layout.repeat("sweep", number)
            done, results = sweep.run_sweep(self.config.sweep, context, configs, name)
            if done.cancelled:
                raise KeyboardInterrupt
            if not done.ok:
                log = log_dir / f"{name}.log"
                said = explain_end(done, "the baseline sweep", log)
                raise RootSweepFailed(said + keep_log(self.worktrees, log))
            return self._read(results, context)
        finally:
            self.worktrees.remove_candidate(layout.ROOT_BASELINE)

    def _read(self, results: Path, context: CommandContext) -> bytes:
        """That a sweep of our own commit wrote nothing usable is an error."""
        try:
            data = sweep.read_results_file(self.config.sweep, results, context)
        except untrusted.NotPlain as problem:
            raise RootSweepFailed(
                f"the baseline sweep wrote results that cannot be read: {problem}"
            ) from None
        if data is None:
            raise RootSweepFailed(
                "the baseline sweep wrote no results: it has to write one CSV row per config to "
                f"the path in TREEWRIGHT_RESULTS_CSV (docs/sweep-contract.md){self.last_words()}"
            )
        return data
