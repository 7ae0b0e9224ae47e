"""Measuring a commit: its tests, then its sweep, or repeats of it in turns with the parent's.

A machine that warms up, slows down or is shared changes the numbers over time. With repeats the
parent is therefore measured again with every candidate, and the order changes from one repeat to
the next.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.procs.cancellation import Deadline
from treewright.tree.deciding import objectives, scoring
from treewright.tree.deciding.results import NotOneTable, Part, Side, merge_sweeps
from treewright.tree.evaluating import contexts
from treewright.tree.evaluating.contexts import explain_end
from treewright.tree.evaluating.perturbation import CONTROL, Perturbation
from treewright.tree.evaluating.request import (
    CANCELLED,
    EvalRequest,
    HeldoutOutcome,
    HeldoutRequest,
    Rejected,
    keep_heldout,
)
from treewright.tree.guard import shared_paths
from treewright.tree.guard.baselines import DecidingFiles
from treewright.tree.guard.commands import (
    CommandContext,
    ConfigRange,
    run_sweep,
    run_tests,
)
from treewright.tree.guard.seals import Distrusted
from treewright.tree.records import layout
from treewright.tree.records.model import UNREADABLE_RESULTS
from treewright.tree.repository.worktrees import Worktrees

PARENT_SWEEP_FAILED = "parent_sweep_failed"
_EXACT_CHECKS = ((7, True), (11, False))
"""The sweeps that check an exact candidate: the draws of the perturbation, and whether
TREEWRIGHT_SEED is set."""
_OTHER_SEED = 1001
"""The repeat number that gives the second sweep of an exact candidate another seed."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """The measurement of one candidate. `timed` records the duration of each phase."""

    request: EvalRequest
    commit: str
    worktrees: Worktrees
    experiment: Path
    cancel: Deadline
    deciding: DecidingFiles | None
    timed: Callable[[str], AbstractContextManager[None]]

    def measure(self) -> bytes | None:
        """Run the tests, then the sweeps; return the results, or None if the sweep wrote none."""
        self._test()
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

    def require_exact(self, results: bytes | None) -> None:
        """Sweep the candidate again, as a run does with its root, under other random numbers.

        Raises:
            Rejected: A metric with `deterministic = true` differs.
        """
        with self.timed("check_sweep"):
            for draws, is_seeded in _EXACT_CHECKS:
                found = self._find_noise(results, draws, is_seeded)
                if found is not None:
                    raise Rejected(
                        scoring.NOT_DETERMINISTIC,
                        f"{found[0]} is {found[1]}, of the same code with other random numbers: "
                        "set seeds or repeats for it in place of deterministic",
                    )

    def _find_noise(
        self, results: bytes | None, draws: int, is_seeded: bool
    ) -> tuple[str, str] | None:
        """Return the metric that differs in a perturbed sweep, and its values."""
        change = Perturbation(self.request.config, self.request.protected_paths, draws)
        again = self._sweep_again(change, is_seeded)
        if again is not None and self._difference(results, again) is None:
            return None
        plain = self._sweep_again(None, is_seeded)
        if plain or is_seeded:
            found = self._difference(results, plain)
            if found is not None:
                return found
        control = self._sweep_again(dataclasses.replace(change, draws=CONTROL), is_seeded)
        if again is None or not control or self._difference(control, again) is None:
            return None  # the number depends on the text of the program, not on chance
        return self._difference(results, again)

    def _sweep_again(self, change: Perturbation | None, is_seeded: bool) -> bytes | None:
        """Sweep the candidate with another seed or none; None if that takes too long.

        A sweep that fails has no results: b"".
        """
        request = self.request
        worktree = self.worktrees.pristine_candidate(request.eval_id, self.commit)
        if change is not None:
            change.apply(worktree)
        try:
            return self._sweep_checkout(_OTHER_SEED, "check_sweep", is_seeded=is_seeded) or b""
        except Rejected as problem:
            if problem.error.code == "sweep_failed":
                return b""
            if problem.error.code != "sweep_timeout":
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
            try:
                done = run_tests(tests, self._context())
            except Distrusted as problem:
                raise Rejected(problem.code, str(problem)) from None
        if not done.ok:
            code = "tests_timeout" if done.timed_out else "tests_failed"
            code = "cancelled" if done.cancelled else code
            log = self.experiment / layout.TESTS_LOG
            raise Rejected(code, explain_end(done, "the test command", log), log, done.cancelled)
        # The tests may have left files: the sweep starts from the commit.
        self.worktrees.pristine_candidate(self.request.eval_id, self.commit)

    def _sweep(self, number: int) -> bytes | None:
        if number > 1:
            self.worktrees.pristine_candidate(self.request.eval_id, self.commit)
        return self._sweep_checkout(number, layout.repeat("sweep", number))

    def _sweep_checkout(self, number: int, name: str, *, is_seeded: bool = True) -> bytes | None:
        request = self.request
        context = self._context(number)
        if not is_seeded:
            context = dataclasses.replace(context, seed=None)
        configs = ConfigRange(0, request.sweep_config_limit)
        try:
            run = run_sweep(request.config.sweep, context, configs, name)
        except Distrusted as problem:
            raise Rejected(problem.code, str(problem)) from None
        done = run.done
        if not done.ok:
            code = "sweep_timeout" if done.timed_out else "sweep_failed"
            code = "cancelled" if done.cancelled else code
            said = explain_end(done, "the sweep", run.log)
            raise Rejected(code, said, run.log, done.cancelled)
        return run.results

    def _sweep_parent(self, number: int) -> bytes:
        """Sweep the parent in a new checkout: the candidate's code ran next to the last one.

        A failure of the parent says nothing about the candidate.
        """
        request = self.request
        worktree = self.worktrees.pristine_candidate(
            layout.parent_of(request.eval_id), request.parent_commit
        )
        context = dataclasses.replace(self._context(number), worktree=worktree, deciding=None)
        configs = ConfigRange(0, request.sweep_config_limit)
        name = layout.repeat("parent_sweep", number)
        try:
            run = run_sweep(request.config.sweep, context, configs, name)
        except Distrusted as problem:
            said = f"the sweep of its parent: {problem}"
            log = self.experiment / f"{name}.log"
            raise Rejected(PARENT_SWEEP_FAILED, said, log, retryable=True) from None
        if run.done.cancelled:
            said = explain_end(run.done, "the sweep", run.log)
            raise Rejected("cancelled", said, run.log, True)
        if run.results is None:
            said = explain_end(run.done, "the sweep of its parent", run.log)
            raise Rejected(PARENT_SWEEP_FAILED, said, run.log, retryable=True)
        return run.results

    def _context(self, number: int = 1) -> CommandContext:
        """Return the context of a repeat; each repeat has another TREEWRIGHT_SEED."""
        request = self.request
        worktree = self.worktrees.candidate_path(request.eval_id)
        context = contexts.candidate_context(
            request, worktree, self.experiment, self.cancel, self.deciding
        )
        return dataclasses.replace(context, seed=contexts.repeat_seed(request.seed, number))


def measure_heldout(
    request: HeldoutRequest, cancel: threading.Event | None, deciding: DecidingFiles | None
) -> HeldoutOutcome:
    """Sweep a commit on held-out configs, in a worktree that has exactly its files."""
    started = time.monotonic()
    trees = Worktrees(Path(request.repo), Path(request.run_dir), request.tree_run_id)
    log_dir = Path(request.run_dir) / request.log_dir
    shared_paths.restore(trees.run_dir, log_dir.parent, log_dir)
    worktree = trees.pristine_candidate(request.eval_id, request.commit)
    log_dir.mkdir(parents=True, exist_ok=True)
    context = contexts.candidate_context(request, worktree, log_dir, cancel, deciding)
    configs = ConfigRange(request.config_start, request.config_stop)
    kept, problem = None, ""
    try:
        run = run_sweep(request.config.sweep, context, configs, request.name)
    except Distrusted as distrusted:
        problem = distrusted.code
    else:
        if run.done.cancelled:
            problem = CANCELLED
        elif run.results is None:
            problem = "sweep_timeout" if run.done.timed_out else "sweep_failed"
        else:
            kept = keep_heldout(request, run.results, "held-out sweep")
            if deciding is not None:
                deciding.keep_in_memory(kept)
    return HeldoutOutcome(kept, problem, time.monotonic() - started)


Sweep = Callable[[int], bytes | None]
"""A function that sweeps for a repeat; repeats are numbered from 1."""


def in_turns(candidate: Sweep, parent: Sweep, repeats: int) -> bytes | None:
    """Return all results in one file, or None if the candidate wrote none."""
    parts: list[tuple[Part, bytes]] = []
    for number in range(1, repeats + 1):
        order: list[Side] = ["parent", "candidate"]
        for side in order if number % 2 else reversed(order):
            data = parent(number) if side == "parent" else candidate(number)
            if data is None:
                return None
            parts.append((Part(side, number), data))
    return merge_sweeps(parts)


def one_after_the_other(sweep: Callable[[int], bytes], repeats: int) -> bytes:
    """Return the repeated results of the root, which has no parent to take turns with."""
    if repeats == 1:
        return sweep(1)
    return merge_sweeps([(Part(repeat=n), sweep(n)) for n in range(1, repeats + 1)])
