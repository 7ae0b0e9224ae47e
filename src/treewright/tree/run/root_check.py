"""The check that the sweep and the tests still work on the root commit.

The loop makes it before it records a failed sweep or failed tests as the candidate's failure.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field

from treewright.kernel.procs.cancellation import Deadline
from treewright.tree.config import Config
from treewright.tree.evaluating.contexts import SweepError, slot_variables
from treewright.tree.evaluating.preflight import Preflight
from treewright.tree.repository.git import GitError, GitKilled
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.run import faults
from treewright.tree.run.outcomes import RootCommand

ROOT_CHECK_TTL_FACTOR = 10
"""A root check stays valid for ten times its own duration."""
_log = logging.getLogger("treewright")


@dataclass(slots=True)
class RootCheck:
    """Runs the sweep or the tests on the root, and remembers the answer for a while.

    Attributes:
        config: The configuration with the commands.
        worktrees: Where the root commit is checked out.
        commit: The root commit.
        config_id: The config that is swept.
        owner: Marks the processes of this owner.
        cancel: Ends the check.
        timeout_seconds: The time limit of an evaluation, which the check has as well.
    """

    config: Config
    worktrees: Worktrees
    commit: str
    config_id: int
    owner: str
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
        limit = Deadline(self.cancel, self.timeout_seconds)
        variables = slot_variables(self.config, slot)
        preflight = Preflight(self.config, self.worktrees, self.owner, limit, variables)
        try:
            if command == "sweep":
                preflight.check(self.commit, self.config_id)
            else:
                preflight.check_tests(self.commit)
            works = True
        except (SweepError, GitError, GitKilled, OSError) as error:
            if faults.is_full_disk(error):
                raise
            _log.warning("%s", error)
            works = False
        ended = time.monotonic()
        self._answers[command] = (ended + ROOT_CHECK_TTL_FACTOR * (ended - began), works)
        return works
