"""One evaluation: implement the idea in a worktree, test, sweep, score.

Needs nothing of the coordinator's state: a request holds all there is to know, an
outcome all there is to record. A candidate's own failings (a patch that does not
apply, failing tests, a cheat) are outcomes; only our own faults raise.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from treewright.kernel import artifacts
from treewright.kernel.artifacts import Artifact
from treewright.tree import scoring, summary, sweep, worktrees
from treewright.tree.agents.base import AgentFailure
from treewright.tree.agents.loop import implement
from treewright.tree.config import Config
from treewright.tree.ideas import text as idea_text
from treewright.tree.model import Comparison, EvalError, EvalOutcome, Usage
from treewright.tree.results import Results, read_results
from treewright.tree.sweep import CommandContext, ConfigRange
from treewright.tree.worktrees import Commit, Worktrees

PROTECTED_PATH_CHANGED = "protected_path_changed"


class EvalRequest(msgspec.Struct, frozen=True):
    """Everything an evaluation depends on. Paths are absolute, for the machine it runs on."""

    tree_run_id: str
    eval_id: str
    attempt: int
    parent_node_id: str
    parent_commit: str
    idea_path: str
    parent_context: str
    repo: str
    run_dir: str
    config: Config
    protected_paths: list[str]
    expected_ids: list[int]
    sweep_config_limit: int | None
    parent_baseline: str
    root_baseline: str
    commit_time: int
    seed: int
    owner: str


class _Rejected(Exception):
    """The candidate failed on its own account."""

    def __init__(self, code: str, message: str, log: Path | None = None, retryable: bool = False):
        super().__init__(message)
        self.error = EvalError(code, message, retryable, str(log) if log else None)


class Evaluator:
    """Runs requests; one instance serves all of a run's workers."""

    def __init__(self, cancel: threading.Event | None = None) -> None:
        self._cancel = cancel

    def __call__(self, request: EvalRequest) -> EvalOutcome:
        return _Evaluation(request, self._cancel).run()


class _Evaluation:
    def __init__(self, request: EvalRequest, cancel: threading.Event | None) -> None:
        self._request = request
        self._cancel = cancel
        self._run_dir = Path(request.run_dir)
        self._experiment = self._run_dir / "eval" / request.eval_id / "experiment"
        self._worktrees = Worktrees(Path(request.repo), self._run_dir, request.tree_run_id)
        self._timings: dict[str, float] = {}
        self._usage = Usage()
        self._rounds = 0
        self._approved: bool | None = None
        self._commit: Commit | None = None
        self._results: Artifact | None = None
        self._comparisons: tuple[Comparison, Comparison] | None = None

    def run(self) -> EvalOutcome:
        self._prepare()
        error = None
        try:
            self._implement()
            self._commit_changes()
            self._test()
            self._score(self._sweep())
        except _Rejected as rejected:
            error = self._relative(rejected.error)
        except AgentFailure as failure:
            self._usage += failure.usage
            log = str(failure.log) if failure.log else None
            error = self._relative(EvalError(failure.code, str(failure), failure.retryable, log))
        outcome = self._outcome(error)
        self._write_summary(outcome)
        return outcome

    def _prepare(self) -> None:
        """A fresh directory; what an earlier, interrupted attempt left is set aside."""
        if self._experiment.exists():
            aside = self._experiment.with_name(
                f"interrupted_before_attempt_{self._request.attempt}"
            )
            shutil.rmtree(aside, ignore_errors=True)
            self._experiment.rename(aside)
        self._experiment.mkdir(parents=True)

    def _implement(self) -> None:
        request = self._request
        with self._timed("implement"):
            text = (self._run_dir / request.idea_path).read_text(encoding="utf-8")
            worktree = self._worktrees.add_candidate(request.eval_id, request.parent_commit)
            done = implement(
                request.config,
                text,
                worktree,
                self._experiment,
                request.parent_context,
                repo=Path(request.repo),
                seed=request.seed,
                owner=request.owner,
                cancel=self._cancel,
            )
        self._usage += done.usage
        self._rounds, self._approved = done.review_rounds, done.approved

    def _commit_changes(self) -> None:
        request = self._request
        worktree = self._worktrees.candidate_path(request.eval_id)
        changed = worktrees.stage_all(worktree)
        if not changed:
            raise _Rejected("no_changes", "the implementation changed no tracked file")
        protected = worktrees.protected_changes(changed, request.protected_paths)
        if protected:
            raise _Rejected(
                PROTECTED_PATH_CHANGED, f"changes protected {_some(protected)}; nothing was run"
            )
        title = idea_text.title((self._run_dir / request.idea_path).read_text(encoding="utf-8"))
        message = f"{title or request.eval_id}\n\nIdea: {request.idea_path}\n"
        self._commit = self._worktrees.commit_candidate(
            request.eval_id, message, request.commit_time
        )

    def _test(self) -> None:
        tests = self._request.config.tests
        if tests is None:
            return
        with self._timed("tests"):
            done = sweep.run_tests(tests, self._context())
        if not done.ok:
            code = "tests_timeout" if done.timed_out else "tests_failed"
            code = "cancelled" if done.cancelled else code
            log = self._experiment / "tests.log"
            raise _Rejected(code, done.explain("the test command"), log, done.cancelled)

    def _sweep(self) -> Path:
        request = self._request
        configs = ConfigRange(0, request.sweep_config_limit)
        with self._timed("sweep"):
            done, results = sweep.run_sweep(request.config.sweep, self._context(), configs)
        if not done.ok:
            code = "sweep_timeout" if done.timed_out else "sweep_failed"
            code = "cancelled" if done.cancelled else code
            log = self._experiment / "sweep.log"
            raise _Rejected(code, done.explain("the sweep"), log, done.cancelled)
        changed = worktrees.tampered(
            self._worktrees.candidate_path(request.eval_id), request.protected_paths
        )
        if changed:
            raise _Rejected(
                PROTECTED_PATH_CHANGED, f"its code changed protected {_some(changed)} while it ran"
            )
        return results

    def _score(self, results: Path) -> None:
        request = self._request
        with self._timed("score"):
            if results.is_file():
                self._results = artifacts.keep(
                    results,
                    self._run_dir,
                    f"{request.eval_id}_results.csv",
                    f"sweep of {request.eval_id}",
                )
                results.unlink()
                results = self._run_dir / self._results.path
            self._comparisons = score_files(
                results,
                Path(request.parent_baseline),
                Path(request.root_baseline),
                request.expected_ids,
                request.config,
                request.seed,
            )

    def _outcome(self, error: EvalError | None) -> EvalOutcome:
        if self._comparisons is not None:
            parent, root = (comparison.recommendation for comparison in self._comparisons)
        else:
            code = error.code if error is not None else scoring.INCOMPLETE_ROWS
            parent = root = scoring.rejection([code], len(self._request.expected_ids))
        return EvalOutcome(
            candidate_commit=self._commit.commit if self._commit else None,
            candidate_tree=self._commit.tree if self._commit else None,
            results_csv=self._results,
            parent_relative=parent,
            root_relative=root,
            review_rounds=self._rounds,
            approved=self._approved,
            usage=self._usage,
            timings={name: round(seconds, 3) for name, seconds in self._timings.items()},
            error=error,
        )

    def _write_summary(self, outcome: EvalOutcome) -> None:
        parent, root = self._comparisons or (None, None)
        summary.write(
            self._experiment / "summary.json",
            outcome,
            eval_id=self._request.eval_id,
            parent_node_id=self._request.parent_node_id,
            idea_path=self._request.idea_path,
            parent_commit=self._request.parent_commit,
            parent_relative=parent,
            root_relative=root,
        )

    def _context(self) -> CommandContext:
        request = self._request
        return CommandContext(
            worktree=self._worktrees.candidate_path(request.eval_id),
            log_dir=self._experiment,
            seed=request.seed,
            owner=request.owner,
            cancel=self._cancel,
            hidden_variables=sweep.secret_variables(request.config),
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


def score_files(
    results: Path,
    parent_baseline: Path,
    root_baseline: Path,
    expected_ids: list[int],
    config: Config,
    seed: int,
) -> tuple[Comparison, Comparison]:
    """Parent-relative and root-relative comparison of a results CSV."""
    expected = set(expected_ids)
    names = [metric.name for metric in config.metrics]

    def read(path: Path) -> Results:
        return read_results(path, names, expected.__contains__)

    candidate, parent = read(results), read(parent_baseline)
    root = parent if root_baseline == parent_baseline else read(root_baseline)
    compare = [
        scoring.compare(baseline, candidate, expected_ids, config.metrics, seed)
        for baseline in (parent, root)
    ]
    return compare[0], compare[1]


def _some(paths: list[str]) -> str:
    shown = ", ".join(paths[:3])
    return f"{shown} and {len(paths) - 3} more" if len(paths) > 3 else shown
