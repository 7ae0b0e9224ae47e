"""The sweep and the tests on the root commit: for its baseline, and before a candidate is blamed.

A sweep that does not work would fail every candidate. The commands are therefore tried on the root
before a run is created, and again before the loop records a failed sweep or failed tests as the
failure of a candidate.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from treewright.kernel.errors import LeaseLost, TreewrightError
from treewright.kernel.procs.cancellation import Deadline
from treewright.kernel.storage import untrusted
from treewright.tree.config import Config
from treewright.tree.deciding import objectives
from treewright.tree.deciding.results import Results
from treewright.tree.evaluating.contexts import (
    SweepError,
    end_of,
    explain_end,
    keep_log,
    last_log_lines,
    repeat_seed,
    root_context,
    slot_variables,
)
from treewright.tree.evaluating.perturbation import Perturbation
from treewright.tree.guard import shared_paths
from treewright.tree.guard.commands import CommandContext, ConfigRange, run_sweep, run_tests
from treewright.tree.guard.seals import Distrusted
from treewright.tree.records import layout
from treewright.tree.repository.git import GitError, GitKilled
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.run import faults
from treewright.tree.run.outcomes import RootCommand

ROOT_CHECK_TTL_FACTOR = 10
"""A root check stays valid for ten times its own duration."""
_NO_TEST = re.compile(rb"^Ran 0 tests\b", re.MULTILINE)
_log = logging.getLogger("treewright")


class RootSweepFailed(TreewrightError):
    """The sweep of the root left no results, or there was nothing to perturb."""


@dataclass(frozen=True, slots=True)
class RootCommands:
    """The user's commands on the root commit, each in a new worktree that is removed afterwards.

    `variables` are more environment variables for the commands of a trial.
    """

    config: Config
    worktrees: Worktrees
    commit: str
    owner: str = ""
    cancel: threading.Event | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def last_log_lines(self) -> str:
        """Return the last lines of the first sweep's log, and the path of the kept log."""
        log = self._log_dir / layout.SWEEP_LOG
        said = last_log_lines(log)
        return (f"; it said: {said}" if said else "") + keep_log(self.worktrees, log)

    @property
    def _log_dir(self) -> Path:
        return self.worktrees.run_dir / layout.sweep_directory(layout.ROOT_BASELINE)

    def sweep(
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

    def try_sweep(self, config_id: int, *, with_tests: bool = False) -> Results:
        """Return the sweep's results for one config.

        Raises:
            SweepError: The sweep gives no sound row, or the tests fail.
        """
        with self._trial() as context:
            one = ConfigRange(config_id, config_id + 1)
            try:
                run = run_sweep(self.config.sweep, context, one)
            except Distrusted as problem:
                raise SweepError(f"the sweep of the root commit: {problem}") from None
            if run.done.cancelled and not self._is_out_of_time():
                raise KeyboardInterrupt
            if not run.done.ok:
                said = explain_end(run.done, "the sweep", run.log)
                raise SweepError(
                    f"{said} (tried on the root commit, config_id {config_id})"
                    f"{keep_log(self.worktrees, run.log)}"
                )
            found = self._checked(run.results, context, config_id)
            if with_tests:
                self._test(context)
            return found

    def try_tests(self) -> None:
        """Run the tests, if there are any; raise a SweepError if they fail."""
        if self.config.tests is not None:
            with self._trial() as context:
                self._test(context)

    def _is_out_of_time(self) -> bool:
        return isinstance(self.cancel, Deadline) and self.cancel.passed

    @contextmanager
    def _trial(self) -> Iterator[CommandContext]:
        """Yield a context for a trial, whose worktree and logs are removed afterwards."""
        log_dir = self.worktrees.run_dir / layout.sweep_directory(layout.PREFLIGHT)
        is_owner = True
        try:
            # A candidate may have put a link there, which would lead the log elsewhere.
            shared_paths.restore(self.worktrees.run_dir)
            untrusted.remove_tree(log_dir)
            log_dir.mkdir(parents=True)
            worktree = self.worktrees.add_candidate(layout.PREFLIGHT, self.commit)
            context = root_context(
                self.config, self.worktrees, worktree, self.commit, log_dir, self.owner, self.cancel
            )
            yield dataclasses.replace(context, variables=self.variables)
        except LeaseLost:
            is_owner = False  # the next owner may use the same directory
            raise
        finally:
            if is_owner:
                self.worktrees.remove_candidate(layout.PREFLIGHT)
                untrusted.remove_tree(log_dir)

    def _test(self, context: CommandContext) -> None:
        """Raise a SweepError if the tests fail on the root, or if the command runs none."""
        if self.config.tests is None:
            return
        done = run_tests(self.config.tests, context)
        if done.cancelled and not self._is_out_of_time():
            raise KeyboardInterrupt
        log = context.log_dir / layout.TESTS_LOG
        if not done.ok:
            said = explain_end(done, "the test command", log)
            raise SweepError(
                f"{said} (on the root commit itself: every candidate would be rejected; fix the "
                f"command, or leave [tests] out){keep_log(self.worktrees, log)}"
            )
        if _NO_TEST.search(end_of(log)):
            raise SweepError(
                "the test command runs no test on the root commit (Ran 0 tests): let it find "
                "them, or leave [tests] out"
            )

    def _checked(self, data: bytes | None, context: CommandContext, config_id: int) -> Results:
        found = objectives.read(data, self.config.metrics, {config_id}.__contains__)
        if config_id not in found.sound_ids:
            example = (found.problems.examples or [f"no row for config_id {config_id}"])[0]
            log = context.log_dir / layout.SWEEP_LOG
            said = last_log_lines(log)
            raise SweepError(
                f"the sweep of the root commit gives no sound row for config_id {config_id}: "
                f"{example}"
                + (f"; it said: {said}" if said else "")
                + keep_log(self.worktrees, log)
            )
        return found


@dataclass(slots=True)
class RootCheck:
    """Tells whether the sweep or the tests work on the root, and remembers the answer for a while.

    Attributes:
        commands: The commands on the root commit.
        config_id: The config that is swept.
        cancel: Ends a check.
        timeout_seconds: The time limit of an evaluation, which a check has as well.
    """

    commands: RootCommands
    config_id: int
    cancel: threading.Event
    timeout_seconds: float | None
    _answers: dict[RootCommand, tuple[float, bool]] = field(default_factory=dict)

    def works(self, command: RootCommand, slot: int | None, *, is_fresh: bool = False) -> bool:
        """Return whether a command works on the root commit.

        A check that could not be run counts as failed: the code of a candidate can make the
        command fail, and can also keep the check from running.

        Args:
            command: The sweep or the tests.
            slot: The slot of the failed evaluation; the check uses its variables.
            is_fresh: Whether to check again although an earlier answer is still valid.
        """
        began = time.monotonic()
        if command in self._answers and not is_fresh:
            valid_until, works = self._answers[command]
            if began < valid_until:
                return works
        trial = dataclasses.replace(
            self.commands,
            cancel=Deadline(self.cancel, self.timeout_seconds),
            variables=slot_variables(self.commands.config, slot),
        )
        try:
            if command == "sweep":
                trial.try_sweep(self.config_id)
            else:
                trial.try_tests()
            works = True
        except (SweepError, GitError, GitKilled, OSError) as error:
            if faults.is_full_disk(error):
                raise
            _log.warning("%s", error)
            works = False
        ended = time.monotonic()
        self._answers[command] = (ended + ROOT_CHECK_TTL_FACTOR * (ended - began), works)
        return works
