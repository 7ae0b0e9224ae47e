"""Measuring a committed candidate: its tests, its sweep, or several in turns with its parent.

What is not to be touched (protected files, and the files by which candidates are judged) is
compared after each of them: a candidate whose code reached for it is not measured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.procs.cancellation import Deadline
from treewright.kernel.storage import untrusted
from treewright.kernel.text.path_list import format_paths
from treewright.tree.deciding import objectives, scoring
from treewright.tree.deciding.repeated import NotOneTable
from treewright.tree.deciding.results import UNREADABLE_RESULTS
from treewright.tree.evaluating import sweep
from treewright.tree.evaluating.perturbation import CONTROL, Perturbation
from treewright.tree.evaluating.request import EvalRequest, Rejected
from treewright.tree.evaluating.sweep import (
    PROTECTED_PATH_CHANGED,
    CommandContext,
    ConfigRange,
)
from treewright.tree.evaluating.turns import in_turns
from treewright.tree.evaluating.wording import explain_end
from treewright.tree.guard import protected_files, shared_paths
from treewright.tree.guard.baselines import DECIDING_FILE_CHANGED, DecidingFiles
from treewright.tree.guard.isolation import Isolation
from treewright.tree.guard.root_checkout import RootVersion
from treewright.tree.guard.seals import Distrusted
from treewright.tree.records import layout
from treewright.tree.repository.worktrees import Worktrees

PARENT_SWEEP_FAILED = "parent_sweep_failed"
_OTHER_SEED = 1001
"""The repeat whose TREEWRIGHT_SEED the second sweep of an exact candidate has."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """Of one candidate. `timed` counts how long each phase takes."""

    request: EvalRequest
    commit: str
    worktrees: Worktrees
    experiment: Path
    cancel: Deadline
    isolation: Isolation | None
    deciding: DecidingFiles | None
    timed: Callable[[str], AbstractContextManager[None]]

    def results(self) -> bytes | None:
        """What is compared, if the tests pass; None if the sweep left nothing."""
        self._test()
        return self._measure()

    def require_exact(self, results: bytes | None) -> None:
        """Sweep the candidate again as a run does with its root: with another seed and perturbed,
        and without a seed.

        Raises:
            Rejected: A metric with `deterministic = true` differs.
        """
        config = self.request.config
        change = Perturbation(config, self.request.protected_paths)
        with self.timed("check_sweep"):
            again = self._sweep_again(change)
            unseeded = self._sweep_again(None, is_seeded=False)
            found = self._difference(results, unseeded) if unseeded is not None else None
            if again is not None and found is None and self._difference(results, again) is None:
                return
            found = found or self._difference(results, self._sweep_again(None))
            if found is None:
                if again is None:
                    return
                control = self._sweep_again(dataclasses.replace(change, draws=CONTROL))
                if control is None or self._difference(control, again) is None:
                    return  # the number depends on the text of the program, not on chance
                found = self._difference(results, again)
        assert found is not None
        raise Rejected(
            scoring.NOT_DETERMINISTIC,
            f"{found[0]} is {found[1]}, of the same code with other random numbers: set seeds or "
            "repeats for it in place of deterministic",
        )

    def _sweep_again(self, change: Perturbation | None, *, is_seeded: bool = True) -> bytes | None:
        """Sweep the candidate with another seed; None if that gives no results."""
        request = self.request
        worktree = self.worktrees.pristine_candidate(request.eval_id, self.commit)
        if change is not None:
            change.apply(worktree)
        try:
            return self._sweep_checkout(_OTHER_SEED, "check_sweep", is_seeded=is_seeded)
        except Rejected as problem:
            if problem.error.code not in ("sweep_failed", "sweep_timeout"):
                raise
            return None

    def _difference(self, first: bytes | None, second: bytes | None) -> tuple[str, str] | None:
        ids = set(self.request.expected_ids)
        metrics = self.request.config.metrics
        before, after = (objectives.read(d, metrics, ids.__contains__) for d in (first, second))
        return objectives.difference(before, after, metrics)

    def _test(self) -> None:
        tests = self.request.config.tests
        if tests is None:
            return
        with self.timed("tests"):
            done = sweep.run_tests(tests, self._context())
        if not done.ok:
            code = "tests_timeout" if done.timed_out else "tests_failed"
            code = "cancelled" if done.cancelled else code
            log = self.experiment / layout.TESTS_LOG
            raise Rejected(code, explain_end(done, "the test command", log), log, done.cancelled)
        self._check_protected("its code changed protected {} while the tests ran")
        self._check_deciding("while the tests ran")
        # The sweep starts from the commit, whatever the tests left.
        self.worktrees.pristine_candidate(self.request.eval_id, self.commit)

    def _measure(self) -> bytes | None:
        """What is compared: one sweep, or several in turns with as many of the parent."""
        repeats = self.request.config.repeats
        with self.timed("sweep"):
            if repeats == 1:
                return self._sweep(1)
            try:
                return in_turns(self._sweep, self._sweep_parent, repeats)
            except NotOneTable as problem:
                raise Rejected(UNREADABLE_RESULTS, f"no results to read: {problem}") from None
            finally:
                self.worktrees.remove_candidate(layout.parent_of(self.request.eval_id))

    def _sweep(self, number: int) -> bytes | None:
        if number > 1:
            request = self.request
            self.worktrees.pristine_candidate(request.eval_id, self.commit)
        return self._sweep_checkout(number, layout.repeat("sweep", number))

    def _sweep_checkout(self, number: int, name: str, *, is_seeded: bool = True) -> bytes | None:
        request = self.request
        context = self._context(number)
        if not is_seeded:
            context = dataclasses.replace(context, seed=None)
        configs = ConfigRange(0, request.sweep_config_limit)
        try:
            done, results = sweep.run_sweep(request.config.sweep, context, configs, name)
        except Distrusted as problem:
            raise Rejected(problem.code, str(problem)) from None
        if not done.ok:
            code = "sweep_timeout" if done.timed_out else "sweep_failed"
            code = "cancelled" if done.cancelled else code
            log = self.experiment / f"{name}.log"
            raise Rejected(code, explain_end(done, "the sweep", log), log, done.cancelled)
        self._check_protected("its code changed protected {} while it was swept")
        self._check_deciding("while it was swept")
        return self._take_results(results)

    def _take_results(self, results: Path) -> bytes | None:
        """The bytes that are hashed, kept and compared: the file itself is read once."""
        try:
            data = sweep.read_results_file(self.request.config.sweep, results, self._context())
        except untrusted.NotPlain as problem:
            raise Rejected(UNREADABLE_RESULTS, f"no results to read: {problem}") from None
        if data is not None:
            results.unlink()
        return data

    def _sweep_parent(self, number: int) -> bytes:
        """Of a checkout that is made afresh: the candidate's code ran beside it. That it fails
        says nothing about the candidate."""
        request = self.request
        name = layout.parent_of(request.eval_id)
        worktree = self.worktrees.pristine_candidate(name, request.parent_commit)
        context = dataclasses.replace(self._context(number), worktree=worktree)
        configs = ConfigRange(0, request.sweep_config_limit)
        log_name = layout.repeat("parent_sweep", number)
        log = self.experiment / f"{log_name}.log"
        try:
            done, results = sweep.run_sweep(request.config.sweep, context, configs, log_name)
        except Distrusted as problem:
            said = f"the sweep of its parent: {problem}"
            raise Rejected(PARENT_SWEEP_FAILED, said, log, retryable=True) from None
        if done.cancelled:
            raise Rejected("cancelled", explain_end(done, "the sweep", log), log, True)
        data = sweep.read_results_file(request.config.sweep, results, context) if done.ok else None
        if data is None:
            said = explain_end(done, "the sweep of its parent", log)
            raise Rejected(PARENT_SWEEP_FAILED, said, log, retryable=True)
        results.unlink()
        return data

    def _check_protected(self, message: str) -> None:
        """A candidate's are the root's, of which it is known how they are checked out."""
        worktree = self.worktrees.candidate_path(self.request.eval_id)
        changed = protected_files.find_changed(
            Path(self.request.repo),
            worktree,
            self.request.root_commit or self.commit,
            self.request.protected_paths,
        )
        if changed:
            raise Rejected(PROTECTED_PATH_CHANGED, message.format(format_paths(changed)))

    def _check_deciding(self, when: str) -> None:
        """A candidate whose code reached for a baseline is not measured by it."""
        if self.deciding is None:
            return
        shared_paths.restore(self.worktrees.run_dir)
        changed = self.deciding.restore_changed()
        if changed:
            raise Rejected(
                DECIDING_FILE_CHANGED,
                f"{format_paths(changed)}, by which candidates are judged, changed {when} and was "
                "put back",
            )

    def _context(self, number: int = 1) -> CommandContext:
        """The context of a repeat: each has a TREEWRIGHT_SEED of its own."""
        request = self.request
        return CommandContext(
            worktree=self.worktrees.candidate_path(request.eval_id),
            log_dir=self.experiment,
            seed=sweep.repeat_seed(request.seed, number),
            owner=request.owner,
            cancel=self.cancel,
            hidden_variables=sweep.secret_variables(request.config),
            limits=sweep.limits(request.config),
            variables=sweep.slot_variables(request.config, request.slot),
            isolation=self.isolation,
            root=RootVersion(Path(request.repo), request.root_commit, request.protected_paths),
        )
