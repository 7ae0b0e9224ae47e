"""The only writer of a run: what every kind of search has in common.

Each step looks at the manifest, does what is still missing, and records it before
going on; so the same code starts a search and continues one after a crash. Which evaluation
comes next, and when its fate is decided, is what `by_depth` and `steady` add.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treewright.kernel import untrusted
from treewright.kernel.deadline import Fence
from treewright.kernel.errors import StorageError
from treewright.kernel.executors.inline import InlineExecutor
from treewright.tree.config import Config
from treewright.tree.deciding.kept_files import DecidingFiles, KeptFile
from treewright.tree.evaluating import work
from treewright.tree.evaluating.evaluation import EvalRequest
from treewright.tree.evaluating.heldout import HeldoutOutcome, HeldoutRequest
from treewright.tree.evaluating.preflight import Preflight
from treewright.tree.evaluating.sweep import SweepError
from treewright.tree.ideas.expansion import Expander, describe_node
from treewright.tree.records import events as ev
from treewright.tree.records import layout, usage_log
from treewright.tree.records.model import (
    EvalError,
    EvalOutcome,
    Evaluation,
    IdeaRecord,
    Manifest,
    Node,
)
from treewright.tree.records.store import RunStore
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.running import housekeeping
from treewright.tree.running.confirmation import Confirmer
from treewright.tree.running.creation import ROOT_NODE, expected_ids
from treewright.tree.running.dispatch import Dispatcher, ExecutorFactory, FailureRules
from treewright.tree.running.faults import QUARANTINED
from treewright.tree.running.housekeeping import Retention

_MOST_LOSSES = 2
_log = logging.getLogger("treewright")


@dataclass(slots=True)
class Coordinator(ABC):
    """Advances a run that it owns. Assigns work to a `Dispatcher`."""

    store: RunStore
    repo: Path
    config: Config
    retention: Retention = field(default_factory=Retention)
    cancel: threading.Event = field(default_factory=threading.Event)
    failure_rules: FailureRules = field(default_factory=FailureRules)
    make_executor: ExecutorFactory = InlineExecutor
    has_barrier: bool = field(default=False, init=False)
    _expected: list[int] = field(init=False)
    _worktrees: Worktrees = field(init=False)
    _expander: Expander = field(init=False)
    _confirmer: Confirmer = field(init=False)
    _contexts: dict[str, str] = field(default_factory=dict, init=False)
    _fence: Fence = field(init=False)
    _deciding: DecidingFiles = field(init=False)
    _ideas: dict[str, bytes] = field(default_factory=dict, init=False)
    _swept_at: object = field(default=None, init=False)

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
        self._confirmer = Confirmer(
            self._worktrees, self.config, self._deciding, self.owner, self._fence
        )

    @abstractmethod
    def advance(self) -> bool:
        """Goes on with the search; False if it had stopped before."""

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
        running = [e for e in self.manifest.evaluations.values() if e.status == "running"]
        if running:
            died = self.store.lease.owner.takeover == "dead"
            company = len(running) - 1 if died else None
            self.store.record(*(self._after_loss(e, company) for e in running))
        housekeeping.repair(self.store.run_dir, self.manifest, self._worktrees, self.retention)
        self._hold()

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

    def _stop_if_cancelled(self) -> None:
        if self.cancel.is_set():
            raise KeyboardInterrupt

    def _dispatch(self, eval_ids: Iterable[str] = (), to_measure: Iterable[str] = ()) -> None:
        """Hands out work until all of it is done; nothing of it runs on when this ends."""
        do = work.worker(self._fence, self._deciding, dry_run=self.manifest.dry_run)
        executor = self.make_executor(do)
        try:
            Dispatcher(self.store, executor, self, self.cancel, self.failure_rules).run(
                eval_ids, to_measure
            )
        except BaseException:
            self.cancel.set()
            raise
        finally:
            executor.close()

    # -- what the dispatcher asks ---------------------------------------------------------

    @abstractmethod
    def peers(self) -> Iterable[Evaluation]: ...

    @abstractmethod
    def where(self) -> str: ...

    @abstractmethod
    def measured(self, eval_id: str, outcome: HeldoutOutcome) -> None: ...

    @abstractmethod
    def _period(self) -> object:
        """The part of the search for which one look at the sweep is enough."""

    def more(self, room: int) -> Sequence[str]:
        return ()

    def is_preparing(self) -> bool:
        return False

    def finished(self, eval_id: str) -> Sequence[str]:
        return ()

    def sweep_works(self) -> bool:
        """Whether the sweep still does what it did when the run began."""
        if self.manifest.dry_run or self._swept_at == self._period():
            return True
        preflight = Preflight(self.config, self._worktrees, self.owner, self._fence)
        try:
            preflight.check(self.manifest.root_commit, self._expected[0])
        except SweepError as error:
            _log.warning("%s", error)
            return False
        self._swept_at = self._period()
        return True

    def request(self, evaluation: Evaluation, attempt: int) -> EvalRequest:
        manifest, run_dir = self.manifest, self.store.run_dir
        parent = manifest.nodes[evaluation.parent_node_id]
        return EvalRequest(
            tree_run_id=manifest.tree_run_id,
            eval_id=evaluation.eval_id,
            attempt=attempt,
            parent_node_id=parent.node_id,
            parent_commit=parent.commit,
            idea_path=evaluation.idea_path,
            idea=self._idea(evaluation),
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
            timeout_seconds=self.failure_rules.timeout_seconds,
            root_commit=manifest.root_commit,
        )

    def heldout_request(self, evaluation: Evaluation, attempt: int) -> HeldoutRequest:
        if not self.manifest.dry_run:
            _log.info("  %s  measured again on the held-out configs", evaluation.eval_id)
        return self._confirmer.request(self.manifest, evaluation, attempt, self._idea(evaluation))

    def _baseline(self, node: Node) -> KeptFile:
        assert node.artifacts.baseline is not None
        return self._deciding.read(node.artifacts.baseline)

    def _idea(self, evaluation: Evaluation) -> bytes:
        return self._ideas.get(evaluation.idea_path) or self._read_idea(evaluation)

    def _read_idea(self, evaluation: Evaluation) -> bytes:
        """Before any candidate's code could change it. As bytes, because text mode would
        change the line endings of a patch."""
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

    # -- deciding -------------------------------------------------------------------------

    def _promote_and_prune(self, nodes: Iterable[Node], decided: Iterable[Evaluation]) -> None:
        """After the facts are recorded: nodes are pinned and checked out, candidates go."""
        trees = None if self.manifest.dry_run else self._worktrees
        for node in nodes if trees is not None else ():
            self._worktrees.add_node(node.node_id, node.commit)
        housekeeping.prune(self.store.run_dir, decided, trees, self.retention)

    def _hold(self) -> None:
        """Takes what decides from now on into memory, also what came from other machines."""
        self._deciding.hold_all(self.manifest)


def queued(number: int, node: Node, idea: IdeaRecord, depth: int) -> ev.Queued:
    """The evaluation of that number: an idea to be tried on a node."""
    eval_id = f"e{number:06d}"
    return ev.Queued(
        eval_id=eval_id,
        parent_node_id=node.node_id,
        depth=depth,
        idea_id=f"{node.node_id}/{Path(idea.path).stem}",
        idea_path=idea.path,
        idea_sha256=idea.sha256,
        experiment_dir=layout.experiment(eval_id),
    )
