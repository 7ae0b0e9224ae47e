"""One evaluation: implement the idea in a worktree, test, sweep, score.

An evaluation knows nothing of the coordinator's state: it depends on the request alone, and
everything to record is in the outcome. A failure of the candidate (a patch that does not apply,
failing tests, a cheat) is an outcome. Faults of the search or the machine raise an error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from treewright.kernel.errors import StorageError
from treewright.kernel.procs.cancellation import Deadline
from treewright.kernel.storage import artifacts, atomic, untrusted
from treewright.kernel.storage.artifacts import Artifact
from treewright.kernel.text.printable import format_paths
from treewright.llm.usage import Usage
from treewright.tree.agents.backend import AGENT_TIMEOUT, AgentFailure
from treewright.tree.agents.implementation import Assignment, implement
from treewright.tree.deciding import promotion, scoring
from treewright.tree.deciding.scoring import score_results
from treewright.tree.evaluating import contexts
from treewright.tree.evaluating.known_results import Known
from treewright.tree.evaluating.measuring import Measuring
from treewright.tree.evaluating.request import (
    EVAL_TIMEOUT,
    ONLY_SEEDS_CHANGED,
    OUTSIDE_BLOCK_CHANGED,
    WORKTREE_DAMAGED,
    EvalRequest,
    Rejected,
)
from treewright.tree.guard import protected_files, shared_paths
from treewright.tree.guard.baselines import DecidingFiles, KeptFile
from treewright.tree.guard.commands import PROTECTED_PATH_CHANGED
from treewright.tree.guard.isolation import Isolation
from treewright.tree.ideas import idea_text
from treewright.tree.records import layout, summary
from treewright.tree.records.model import UNSET, Comparison, EvalError, EvalOutcome, Unset
from treewright.tree.repository import blocks, formatting
from treewright.tree.repository.git import GitError
from treewright.tree.repository.staging import Staged, stage_all
from treewright.tree.repository.worktrees import Commit, Worktrees


class Evaluation:
    """One evaluation. `run` is called once.

    Args:
        request: Everything that the evaluation depends on.
        deadline: Ends the evaluation.
        deciding: The baselines of the run, which candidates must not change.
        known: Results of code that was swept before.
    """

    def __init__(
        self,
        request: EvalRequest,
        deadline: Deadline,
        deciding: DecidingFiles | None = None,
        known: Known | None = None,
    ) -> None:
        self._request = request
        self._deciding = deciding
        self._known = known
        self._results_from: str | Unset = UNSET
        self._cancel = deadline
        self._run_dir = Path(request.run_dir)
        self._experiment = self._run_dir / layout.experiment(request.eval_id)
        self._worktrees = Worktrees(Path(request.repo), self._run_dir, request.tree_run_id)
        self._handed_over = False
        self._timings: dict[str, float] = {}
        self._usage = Usage()
        self._roles: dict[str, Usage] = {}
        self._rounds = 0
        self._approved: bool | None = None
        self._staged: Staged | None = None
        self._commit: Commit | None = None
        self._code: str | None = None
        self._results: Artifact | None = None
        self._comparisons: tuple[Comparison, Comparison] | None = None

    def run(self) -> EvalOutcome:
        """Return the outcome; a fault of the search or the machine raises an error."""
        self._cancel.check()
        self._prepare()
        error = None
        try:
            self._implement()
            self._commit_changes()
            self._score(self._known_results() or self._measuring().measure())
        except Rejected as rejected:
            error = self._relative(rejected.error)
        except AgentFailure as failure:
            self._usage += failure.usage
            self._roles = failure.roles
            log = str(failure.log) if failure.log else None
            error = self._relative(EvalError(failure.code, str(failure), failure.retryable, log))
            if error.code == "cancelled" and self._cancel.passed:
                error = self._out_of_time(error, AGENT_TIMEOUT, " while an agent was at work")
        except GitError as failure:
            if not self._handed_over:
                raise
            error = EvalError(WORKTREE_DAMAGED, str(failure))
        if error is not None and error.code == "cancelled" and self._cancel.passed:
            error = self._out_of_time(error, EVAL_TIMEOUT)
        self._cancel.check()
        if error is not None:
            self._require_space()
        self._restore_directories()
        outcome = self._outcome(error)
        self._write_summary(outcome)
        return outcome

    def _out_of_time(self, error: EvalError, code: str, when: str = "") -> EvalError:
        """Return the error of an evaluation that reached its time limit.

        With an agent at work the limit is not a verdict: its model may be slow for every candidate.
        """
        seconds = self._request.timeout_seconds or 0.0
        message = f"the evaluation was ended after {seconds:.0f} s{when}: time limit"
        return msgspec.structs.replace(error, code=code, message=message)

    def _require_space(self) -> None:
        """Raise a StorageError if the disk is full and the candidate did not fill it."""
        if atomic.is_full(self._run_dir):
            self._worktrees.remove_candidate(self._request.eval_id)
            if atomic.is_full(self._run_dir):
                raise StorageError(
                    f"no space left in {self._run_dir} while {self._request.eval_id} ran; free "
                    "some and run the same command again: what was recorded before is kept"
                )

    def _prepare(self) -> None:
        """Make a new directory, and move that of an interrupted attempt aside."""
        self._restore_directories()
        if self._experiment.exists():
            aside = self._experiment.with_name(
                f"interrupted_before_attempt_{self._request.attempt}"
            )
            untrusted.remove_tree(aside)
            atomic.sweep_temporaries(self._experiment)
            self._experiment.rename(aside)
        self._experiment.mkdir(parents=True)

    def _restore_directories(self) -> None:
        """Restore the run's directories: this candidate or another may have damaged them."""
        shared_paths.restore(self._run_dir, self._experiment.parent, self._experiment)

    def _implement(self) -> None:
        request = self._request
        with self._timed("implement"):
            worktree = self._worktrees.add_candidate(request.eval_id, request.parent_commit)
            self._handed_over = True
            assignment = Assignment(
                config=request.config,
                idea=self._idea(),
                worktree=worktree,
                log_dir=self._experiment,
                repo=Path(request.repo),
                parent_context=request.parent_context,
                seed=request.seed,
                owner=request.owner,
                cancel=self._cancel,
                allowance=request.allowance,
                variables=contexts.slot_variables(request.config, request.slot),
                isolation=Isolation.of(request.config, Path(request.repo), self._run_dir),
                protected=request.protected_paths,
            )
            done = implement(assignment)
        self._usage += done.usage
        self._roles = done.roles
        self._staged = done.staged
        self._rounds, self._approved = done.review_rounds, done.approved

    def _idea(self) -> str:
        return self._request.idea.decode("utf-8")

    def _commit_changes(self) -> None:
        self._cancel.check()
        request = self._request
        worktree = self._worktrees.candidate_path(request.eval_id)
        staged = self._staged or stage_all(worktree)
        changed = staged.paths
        if not changed:
            raise Rejected("no_changes", "the implementation changed no tracked file")
        protected = protected_files.match_protected(changed, request.protected_paths)
        if protected:
            raise Rejected(
                PROTECTED_PATH_CHANGED,
                f"changes protected {format_paths(protected)}; nothing was run",
            )
        editable = request.config.editable_blocks
        outside = blocks.changed_outside(worktree, changed, editable) if editable else []
        if outside:
            raise Rejected(
                OUTSIDE_BLOCK_CHANGED,
                f"changes more than the marked blocks: {format_paths(outside)}; nothing was run",
            )
        title = idea_text.title(self._idea())
        message = f"{title or request.eval_id}\n\nIdea: {request.idea_path}\n"
        self._commit = self._worktrees.commit_candidate(
            request.eval_id, message, request.commit_time, staged, request.parent_commit
        )
        root, repo = request.root_commit, Path(request.repo)
        self._code = formatting.code_digests(repo, root, [self._commit.commit])[0]
        if formatting.only_seeds_differ(repo, root, request.parent_commit, self._commit.commit):
            raise Rejected(
                ONLY_SEEDS_CHANGED,
                f"changes only the seed of random numbers in {format_paths(changed)}: "
                "a luckier seed is no improvement; nothing was run",
            )

    def _known_results(self) -> bytes | None:
        """Return results of the same code, if it was swept before or is being swept now.

        With repeats the parent has to be swept in turns, and results are not reused. Waiting for
        another sweep does not count against the time limit.
        """
        if self._known is None or self._request.config.repeats > 1:
            return None
        tree = self._committed.tree
        self._known.wait_for_turn(tree, self._request.eval_id, self._cancel)
        found = self._known.find(tree)
        if found is None:
            return None
        self._results_from, data = found
        return data

    def _measuring(self) -> Measuring:
        return Measuring(
            self._request,
            self._committed.commit,
            self._worktrees,
            self._experiment,
            self._cancel,
            self._deciding,
            self._timed,
        )

    @property
    def _committed(self) -> Commit:
        assert self._commit is not None
        return self._commit

    def _score(self, data: bytes | None) -> None:
        request = self._request
        with self._timed("score"):
            comparisons = score_results(
                data,
                request.parent_baseline.data,
                request.root_baseline.data,
                request.expected_ids,
                request.config,
                request.seed,
            )
        is_exact = any(metric.deterministic for metric in request.config.metrics)
        if is_exact and promotion.decide_gate(comparisons[0].recommendation, None).passed:
            self._measuring().require_exact(data)
        if data is not None:
            self._keep_results(data)
        self._comparisons = comparisons

    def _keep_results(self, data: bytes) -> None:
        request = self._request
        self._cancel.check()
        self._restore_directories()
        self._results = artifacts.keep(
            data, self._run_dir, layout.results(request.eval_id), f"sweep of {request.eval_id}"
        )
        if self._deciding is not None:
            self._deciding.keep_in_memory(KeptFile(self._results, data))

    def _outcome(self, error: EvalError | None) -> EvalOutcome:
        if self._comparisons is not None:
            parent, root = (comparison.recommendation for comparison in self._comparisons)
        else:
            code = error.code if error is not None else scoring.INCOMPLETE_ROWS
            parent = root = scoring.rejection([code], len(self._request.expected_ids))
        return EvalOutcome(
            candidate_commit=self._commit.commit if self._commit else None,
            candidate_tree=self._commit.tree if self._commit else None,
            candidate_code=self._code,
            results_csv=self._results,
            parent_relative=parent,
            root_relative=root,
            review_rounds=self._rounds,
            approved=self._approved,
            usage=self._usage,
            roles=self._roles or UNSET,
            timings={name: round(seconds, 3) for name, seconds in self._timings.items()},
            error=error,
            results_from=self._results_from,
        )

    def _write_summary(self, outcome: EvalOutcome) -> None:
        parent, root = self._comparisons or (None, None)
        with atomic.storage_errors(self._experiment):  # the candidate may have removed it
            self._experiment.mkdir(parents=True, exist_ok=True)
        summary.write(
            self._experiment / layout.SUMMARY,
            outcome,
            eval_id=self._request.eval_id,
            parent_node_id=self._request.parent_node_id,
            idea_path=self._request.idea_path,
            parent_commit=self._request.parent_commit,
            parent_relative=parent,
            root_relative=root,
        )

    def _relative(self, error: EvalError) -> EvalError:
        if error.log_path is None:
            return error
        relative = Path(error.log_path).relative_to(self._run_dir).as_posix()
        return msgspec.structs.replace(error, log_path=relative)

    @contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self._timings[phase] = time.monotonic() - started
