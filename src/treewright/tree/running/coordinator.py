"""The search itself: one depth at a time, the only writer of a run.

Each step looks at the manifest, does what is still missing, and records it before
going on; so the same code starts a depth and continues one after a crash.

expand the frontier -> queue -> evaluate -> (barrier) confirm, decide -> promote -> prune
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from treewright.kernel import untrusted
from treewright.kernel.budget import Budget
from treewright.kernel.clock import timestamp
from treewright.kernel.deadline import Fence
from treewright.kernel.errors import StorageError
from treewright.kernel.executors.inline import InlineExecutor
from treewright.tree.config import Config
from treewright.tree.deciding import beam
from treewright.tree.deciding.kept_files import DecidingFiles, KeptFile
from treewright.tree.deciding.promotion import new_node, stop_reason
from treewright.tree.evaluating.evaluation import EvalRequest, Evaluator
from treewright.tree.evaluating.preflight import Preflight
from treewright.tree.evaluating.simulation import simulate
from treewright.tree.evaluating.sweep import SweepError
from treewright.tree.ideas.expansion import Expander, describe_node
from treewright.tree.records import events as ev
from treewright.tree.records import usage_log
from treewright.tree.records.model import EvalError, EvalOutcome, Evaluation, Manifest, Node
from treewright.tree.records.store import RunStore
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.running import housekeeping
from treewright.tree.running.confirmation import Confirmer
from treewright.tree.running.creation import ROOT_NODE, expected_ids
from treewright.tree.running.dispatch import Dispatcher, ExecutorFactory, FailurePolicy
from treewright.tree.running.faults import OF_THE_SWEEP, QUARANTINED, Paused
from treewright.tree.running.housekeeping import Retention

_MOST_LOSSES = 2
_log = logging.getLogger("treewright")


@dataclass(slots=True)
class Coordinator:
    """Advances a run that it owns."""

    store: RunStore
    repo: Path
    config: Config
    retention: Retention = field(default_factory=Retention)
    cancel: threading.Event = field(default_factory=threading.Event)
    policy: FailurePolicy = field(default_factory=FailurePolicy)
    make_executor: ExecutorFactory = InlineExecutor
    _expected: list[int] = field(init=False)
    _worktrees: Worktrees = field(init=False)
    _expander: Expander = field(init=False)
    _contexts: dict[str, str] = field(default_factory=dict, init=False)
    _fence: Fence = field(init=False)
    _deciding: DecidingFiles = field(init=False)
    _ideas: dict[str, bytes] = field(default_factory=dict, init=False)
    _swept_at: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._deciding = DecidingFiles(
            self.store.run_dir, self.repo, self.manifest.tree_run_id, self.manifest.dry_run
        )
        root = self.manifest.nodes[ROOT_NODE].artifacts.baseline
        assert root is not None
        self._expected = expected_ids(self.manifest, self.config, self._deciding.read(root).data)
        self._worktrees = Worktrees(self.repo, self.store.run_dir, self.manifest.tree_run_id)
        self._fence = Fence(self.cancel, self.store.lease.check)
        self._expander = Expander(
            self.repo, self.store.run_dir, self.config, self.owner, self._fence
        )

    @property
    def manifest(self) -> Manifest:
        return self.store.manifest

    @property
    def owner(self) -> str:
        """Marks processes as this run's; the epoch says whose of its owners'."""
        return housekeeping.process_owner(self.store.run_dir, self.store.lease.epoch)

    def recover(self) -> None:
        """Puts right what an owner that died left behind. Cheap if there is nothing."""
        housekeeping.end_orphans(self.store.run_dir, self.store.lease.epoch)
        running = [e for e in self._of_depth() if e.status == "running"]
        if running:
            died = self.store.lease.owner.takeover == "dead"
            company = len(running) - 1 if died else None
            self.store.record(*(self._after_loss(e, company) for e in running))
        housekeeping.repair(self.store.run_dir, self.manifest, self._worktrees, self.retention)
        self._deciding.hold_all(self.manifest)

    def _after_loss(self, evaluation: Evaluation, company: int | None) -> ev.Requeued | ev.Failed:
        """What was running when the owner before us died goes back to the queue. Once: one
        with which, and with which alone, an owner died before is not tried a third time."""
        spent = usage_log.total(self.store.run_dir / evaluation.experiment_dir)
        if company == 0 and evaluation.lost_alone + 1 >= _MOST_LOSSES:
            error = EvalError(
                QUARANTINED,
                f"the search died {_MOST_LOSSES} times while only this candidate ran; it is not "
                "tried again",
            )
            return ev.Failed(
                eval_id=evaluation.eval_id,
                attempt=evaluation.attempt,
                outcome=EvalOutcome(error=error, usage=spent),
            )
        return ev.Requeued(
            eval_id=evaluation.eval_id,
            attempt=evaluation.attempt,
            reason="lost",
            usage=spent,
            company=company,
        )

    def advance(self) -> bool:
        """Does one depth, or what is left of it; False if the search had stopped before."""
        if self.manifest.stop_reason is not None:
            return False
        depth = self.manifest.current_depth + 1
        self._expand(depth)
        self._queue(depth)
        self.store.snapshot()
        if not any(self._of_depth()):
            self.store.record(ev.Stopped(reason="no_new_ideas"))
        else:
            self._evaluate()
            self._decide(depth)
        self.store.snapshot()
        return True

    def _stop_if_cancelled(self) -> None:
        if self.cancel.is_set():
            raise KeyboardInterrupt

    def _of_depth(self) -> Iterator[Evaluation]:
        """Evaluations of the depth being worked on."""
        depth = self.manifest.current_depth + 1
        if len(self.manifest.depths) >= depth:
            for eval_id in self.manifest.depths[depth - 1].eval_ids:
                yield self.manifest.evaluations[eval_id]

    def _expand(self, depth: int) -> None:
        """Chooses ideas for the frontier; no more than the budget lets be tried."""
        manifest = self.manifest
        budget = Budget(manifest.max_total_idea_evals)
        queued = len(list(self._of_depth()))
        for node_id in sorted(manifest.frontier):
            self._stop_if_cancelled()
            if manifest.nodes[node_id].expanded_for_depth != depth:
                planned = sum(
                    idea.depth == depth
                    for n in manifest.frontier
                    for idea in manifest.nodes[n].ideas
                )
                wanted = budget.allow(manifest.ideas_per_node, manifest.spent, planned - queued)
                if wanted:
                    self.store.record(self._expander.expand(manifest, node_id, depth, wanted))

    def _queue(self, depth: int) -> None:
        """Gives every chosen idea its evaluation id, in an order that depends on nothing else."""
        manifest = self.manifest
        queued = {(e.parent_node_id, e.idea_path) for e in self._of_depth()}
        tasks = [
            (node_id, idea)
            for node_id in sorted(manifest.frontier)
            for idea in manifest.nodes[node_id].ideas
            if idea.depth == depth and (node_id, idea.path) not in queued
        ]
        budget = Budget(manifest.max_total_idea_evals)
        events = []
        for node_id, idea in tasks[: budget.allow(len(tasks), manifest.spent)]:
            eval_id = f"e{len(manifest.evaluations) + len(events) + 1:06d}"
            events.append(
                ev.Queued(
                    eval_id=eval_id,
                    parent_node_id=node_id,
                    depth=depth,
                    idea_id=f"{node_id}/{Path(idea.path).stem}",
                    idea_path=idea.path,
                    idea_sha256=idea.sha256,
                    experiment_dir=f"eval/{eval_id}/experiment",
                )
            )
        if events:
            self.store.record(*events)

    def _evaluate(self) -> None:
        """Runs what is pending; returns when every evaluation of the depth has an outcome."""
        pending = [e.eval_id for e in self._of_depth() if e.status == "pending"]
        if not pending:
            return
        self._ideas = {e.idea_path: self._read_idea(e) for e in self._of_depth()}
        work = simulate if self.manifest.dry_run else Evaluator(self._fence, self._deciding)
        executor = self.make_executor(work)
        try:
            Dispatcher(
                self.store, executor, self._request, self.cancel, self.policy, self._sweep_works
            ).run(pending)
        except BaseException:
            self.cancel.set()
            raise
        finally:
            executor.close()

    def _sweep_works(self) -> bool:
        """Whether the sweep still does what it did when the run began; looked at once a depth."""
        if self.manifest.dry_run or self._swept_at == self.manifest.current_depth:
            return True
        preflight = Preflight(self.config, self._worktrees, self.owner, self._fence)
        try:
            preflight.check(self.manifest.root_commit, self._expected[0])
        except SweepError as error:
            _log.warning("%s", error)
            return False
        self._swept_at = self.manifest.current_depth
        return True

    def _request(self, evaluation: Evaluation, attempt: int) -> EvalRequest:
        manifest, run_dir = self.manifest, self.store.run_dir
        parent = manifest.nodes[evaluation.parent_node_id]
        return EvalRequest(
            tree_run_id=manifest.tree_run_id,
            eval_id=evaluation.eval_id,
            attempt=attempt,
            parent_node_id=parent.node_id,
            parent_commit=parent.commit,
            idea_path=evaluation.idea_path,
            idea=self._ideas.get(evaluation.idea_path) or self._read_idea(evaluation),
            parent_context=self._context(parent),
            repo=str(self.repo),
            run_dir=str(run_dir),
            config=self.config,
            protected_paths=manifest.protected_paths,
            expected_ids=self._expected,
            sweep_config_limit=manifest.sweep_config_limit,
            parent_baseline=self._baseline(parent),
            root_baseline=self._baseline(manifest.nodes[ROOT_NODE]),
            scoring_rule=manifest.scoring_rule,
            commit_time=manifest.root_commit_time + evaluation.depth,
            seed=manifest.seed,
            owner=self.owner,
            timeout_seconds=self.policy.timeout_seconds,
            root_commit=manifest.root_commit,
        )

    def _baseline(self, node: Node) -> KeptFile:
        assert node.artifacts.baseline is not None
        return self._deciding.read(node.artifacts.baseline)

    def _read_idea(self, evaluation: Evaluation) -> bytes:
        """Before any candidate's code of this depth has run: it could change the next one's.
        As bytes, because text mode would change the line endings of a patch."""
        path = self.store.run_dir / evaluation.idea_path
        try:
            data = untrusted.read(path, untrusted.LARGEST_TEXT)
        except OSError as error:
            raise StorageError(f"cannot read the idea of {evaluation.eval_id}: {error}") from None
        if hashlib.sha256(data).hexdigest() != evaluation.idea_sha256:
            raise StorageError(
                f"{path} is not the idea that was recorded for {evaluation.eval_id}; restore it "
                "from a backup, or start a new run"
            )
        return data

    def _context(self, node: Node) -> str:
        """Made once a node: its children are told the same."""
        if node.node_id not in self._contexts:
            self._contexts = {
                node_id: self._contexts[node_id]
                for node_id in self.manifest.frontier
                if node_id in self._contexts
            }
            self._contexts[node.node_id] = describe_node(self.store.run_dir, self.manifest, node)
        return self._contexts[node.node_id]

    def _decide(self, depth: int) -> None:
        """The barrier: applies gate and beam to the whole depth, then promotes and prunes."""
        manifest = self.manifest
        evaluations = list(self._of_depth())
        unsettled = [e.eval_id for e in evaluations if e.status not in ("completed", "failed")]
        if unsettled:
            raise StorageError(f"depth {depth} cannot be decided: {unsettled[0]} has no outcome")
        self._deciding.hold_all(manifest)  # also what came from other machines
        selection = self._select(depth, evaluations)
        now = timestamp()
        nodes = [
            new_node(manifest, manifest.evaluations[eval_id], len(manifest.nodes) + place, now)
            for place, eval_id in enumerate(selection.promoted)
        ]
        decisions = dict(selection.decisions)
        for node, eval_id in zip(nodes, selection.promoted, strict=True):
            decisions[eval_id] = msgspec.structs.replace(
                decisions[eval_id], promoted_to_node_id=node.node_id
            )
        frontier = [node.node_id for node in nodes]
        if not frontier and not manifest.stop_on_empty_frontier:
            frontier = list(manifest.frontier)
        self.store.record(
            ev.Decided(
                depth=depth,
                decisions=decisions,
                nodes=nodes,
                frontier=frontier,
                stop_reason=stop_reason(manifest, depth, promoted=bool(nodes)),
                rejected_worktrees_kept=self.retention.rejected_worktrees,
            )
        )
        if not manifest.dry_run:
            for node in nodes:
                self._worktrees.add_node(node.node_id, node.commit)
        self._deciding.hold_all(manifest)
        trees = None if manifest.dry_run else self._worktrees
        housekeeping.prune(self.store.run_dir, evaluations, trees, self.retention)

    def _select(self, depth: int, evaluations: list[Evaluation]) -> beam.Selection:
        manifest = self.manifest
        trees = {node.tree for node in manifest.nodes.values()}
        confirmer = Confirmer(
            self.store.run_dir,
            self.config,
            self._worktrees,
            self._deciding,
            self.owner,
            self._fence,
        )
        while True:
            confirmations = None
            if manifest.confirm_configs:
                confirmations = {
                    e.eval_id: e.confirmation for e in evaluations if e.confirmation is not None
                }
            selection = beam.select(evaluations, manifest.beam_width, trees, confirmations)
            if selection.to_confirm is None:
                return selection
            self._stop_if_cancelled()
            evaluation = manifest.evaluations[selection.to_confirm]
            if manifest.nodes[evaluation.parent_node_id].artifacts.heldout is None:
                self.store.record(confirmer.measure_node(manifest, evaluation.parent_node_id))
            request = self._request(evaluation, evaluation.attempt)
            confirmed = confirmer.confirm(manifest, request)
            failed_there = OF_THE_SWEEP.intersection(confirmed.confirmation.reasons)
            if failed_there and not self._sweep_works():
                raise Paused(
                    f"paused at depth {depth}: the sweep does not work on the root commit either, "
                    f"so {evaluation.eval_id} was not judged by it; put that right and run the "
                    "same command again"
                )
            self.store.record(confirmed)
