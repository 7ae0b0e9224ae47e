"""A trial of the sweep and the tests on the root commit, before a candidate can be blamed."""

from __future__ import annotations

import dataclasses
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from treewright.kernel.errors import LeaseLost
from treewright.kernel.procs.cancellation import Deadline
from treewright.kernel.storage import untrusted
from treewright.tree.config import Config
from treewright.tree.deciding import objectives
from treewright.tree.deciding.results import Results
from treewright.tree.evaluating.command_logs import end_of, explain_end, keep_log, last_log_lines
from treewright.tree.evaluating.contexts import SweepError, root_context
from treewright.tree.guard import shared_paths
from treewright.tree.guard.commands import CommandContext, ConfigRange, run_sweep, run_tests
from treewright.tree.guard.seals import Distrusted
from treewright.tree.records import layout
from treewright.tree.repository.worktrees import Worktrees

_NO_TEST = re.compile(rb"^Ran 0 tests\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Preflight:
    """Runs the user's commands on one commit, in a worktree that is removed afterwards."""

    config: Config
    worktrees: Worktrees
    owner: str = ""
    cancel: threading.Event | None = None
    variables: Mapping[str, str] = field(default_factory=dict)

    def check(self, commit: str, config_id: int, *, with_tests: bool = False) -> Results:
        """Return the sweep's results for one config.

        Raises:
            SweepError: The sweep gives no sound row, or the tests fail.
        """
        with self._checkout(commit) as context:
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

    def check_tests(self, commit: str) -> None:
        """Run the tests, if there are any; raise a SweepError if they fail."""
        if self.config.tests is not None:
            with self._checkout(commit) as context:
                self._test(context)

    def _is_out_of_time(self) -> bool:
        return isinstance(self.cancel, Deadline) and self.cancel.passed

    @contextmanager
    def _checkout(self, commit: str) -> Iterator[CommandContext]:
        log_dir = self.worktrees.run_dir / layout.sweep_directory(layout.PREFLIGHT)
        is_owner = True
        try:
            # A candidate may have put a link there, which would lead the log elsewhere.
            shared_paths.restore(self.worktrees.run_dir)
            untrusted.remove_tree(log_dir)
            log_dir.mkdir(parents=True)
            worktree = self.worktrees.add_candidate(layout.PREFLIGHT, commit)
            context = root_context(
                self.config, self.worktrees, worktree, commit, log_dir, self.owner, self.cancel
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
