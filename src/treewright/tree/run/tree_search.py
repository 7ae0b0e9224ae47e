"""The interface between the loop and a search: its work, and its reaction to each result.

`BeamSearch` decides about whole depths, `PolicySearch` about one evaluation at a time. Both share
the parts of a run (`RunParts`) with the loop.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

from treewright.kernel.procs.cancellation import Fence
from treewright.tree.config import Config
from treewright.tree.evaluating.known_results import EarlierResults, KnownResults
from treewright.tree.evaluating.request import HeldoutOutcome
from treewright.tree.guard.baselines import DecidingFiles
from treewright.tree.ideas.expansion import Expander
from treewright.tree.records import events as ev
from treewright.tree.records.model import Evaluation, Manifest, Node
from treewright.tree.records.steering import Command
from treewright.tree.records.store import RunStore
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.run import cleanup
from treewright.tree.run.cleanup import Retention
from treewright.tree.run.command_files import Inbox
from treewright.tree.run.confirmation import Confirmer
from treewright.tree.run.creation import ROOT_NODE, expected_ids
from treewright.tree.run.meter import Meter, caps_of
from treewright.tree.run.outcomes import FailureRules
from treewright.tree.run.requests import Requests


@dataclass(slots=True)
class RunOptions:
    """The settings of one invocation, which are not part of the run.

    Attributes:
        retention: Which worktrees and artifacts of failures are kept.
        failure_rules: Retries, time limit and limit per node.
        meter: Keeps the run within its caps.
        workers: How many evaluations run at once.
        is_local: Whether evaluations run on this machine.
    """

    retention: Retention = field(default_factory=Retention)
    failure_rules: FailureRules = field(default_factory=FailureRules)
    meter: Meter = field(default_factory=Meter)
    workers: int = 1
    is_local: bool = True


@dataclass(slots=True)
class RunParts:
    """The objects that the loop and the search of one owner share."""

    store: RunStore
    repo: Path
    config: Config
    options: RunOptions
    cancel: threading.Event
    owner: str = field(init=False)
    """Marks the processes of this owner."""
    fence: Fence = field(init=False)
    expected: list[int] = field(init=False)
    """The configs that every candidate is swept on."""
    worktrees: Worktrees = field(init=False)
    deciding_files: DecidingFiles = field(init=False)
    known_results: KnownResults = field(init=False)
    expander: Expander = field(init=False)
    confirmer: Confirmer = field(init=False)
    requests: Requests = field(init=False)
    inbox: Inbox = field(init=False)

    def __post_init__(self) -> None:
        manifest, run_dir = self.manifest, self.store.run_dir
        self.owner = cleanup.process_owner(run_dir, self.store.lease.epoch)
        self.fence = Fence(self.cancel, self.store.lease.check)
        self.inbox = Inbox(run_dir)
        self.worktrees = Worktrees(self.repo, run_dir, manifest.tree_run_id)
        self.deciding_files = DecidingFiles(
            run_dir, self.repo, manifest.tree_run_id, manifest.dry_run
        )
        root = manifest.nodes[ROOT_NODE].artifacts.baseline
        assert root is not None
        self.expected = expected_ids(manifest, self.config, self.deciding_files.read(root).data)
        earlier = EarlierResults()
        if self.config.sweep.reuse_results and not manifest.dry_run:
            earlier = EarlierResults.of(run_dir.parent, manifest)
        self.known_results = KnownResults.of(manifest, self.deciding_files, earlier)
        self.expander = Expander(self.repo, run_dir, self.config, self.owner, self.fence)
        self.requests = Requests(
            self.store, self.repo, self.config, self.deciding_files, self.expected, self.owner
        )
        self.confirmer = Confirmer(
            self.worktrees, self.config, self.deciding_files, self.owner, self.fence
        )

    @property
    def manifest(self) -> Manifest:
        return self.store.manifest

    def generations_at_once(self) -> int:
        """Return for how many nodes ideas may be generated at the same time.

        Under caps it is one: the cost of a generation is known when the one before it is paid.
        """
        return 1 if caps_of(self.manifest) else self.options.workers

    def promote_and_prune(self, nodes: Iterable[Node], decided: Iterable[Evaluation]) -> None:
        """Check out new nodes and remove candidates, after the decision is recorded."""
        trees = None if self.manifest.dry_run else self.worktrees
        for node in nodes if trees is not None else ():
            self.worktrees.add_node(node.node_id, node.commit)
        cleanup.prune(self.store.run_dir, decided, trees, self.options.retention)

    def stop_if_cancelled(self) -> None:
        if self.cancel.is_set():
            raise KeyboardInterrupt


class Work(NamedTuple):
    """Evaluations to run, and evaluated candidates to sweep on the held-out configs."""

    evaluations: Sequence[str] = ()
    measurements: Sequence[str] = ()


@dataclass(slots=True)
class TreeSearch(ABC):
    """A search over commits, as the loop sees it.

    The loop asks for work, runs it and tells the search each result as soon as it is recorded. It
    knows nothing of nodes, depths or policies.
    """

    has_barrier: ClassVar[bool]
    """Whether all evaluations of a stage end before anything is decided about them."""

    parts: RunParts

    @property
    def manifest(self) -> Manifest:
        return self.parts.store.manifest

    @abstractmethod
    def begin(self, checkpoint: Callable[[], None]) -> Work | None:
        """Return the work to begin with; None if this invocation has no work.

        Args:
            checkpoint: Call it between long steps: it waits while the run is paused, and raises if
                the run is to end.
        """

    @abstractmethod
    def next_stage(self) -> Work | None:
        """Return further work once all work so far has ended; None when the search is done."""

    @abstractmethod
    def peers(self) -> Iterable[Evaluation]:
        """Yield the evaluations that a failure is compared with: did others pass?"""

    @abstractmethod
    def position(self) -> str:
        """Return how far the search is, for messages."""

    @abstractmethod
    def on_measured(self, eval_id: str, outcome: HeldoutOutcome) -> None:
        """Use the results of a held-out sweep."""

    @abstractmethod
    def can_apply(self, command: Command) -> bool:
        """Return whether a command of the user may change the run at this moment."""

    @abstractmethod
    def keep_files(self) -> None:
        """Read the files that the next decisions rest on into memory."""

    def more(self, room: int) -> Sequence[str]:
        """Return further evaluations, recorded as queued; `room` workers have no work."""
        return ()

    def is_preparing(self) -> bool:
        """Return whether more work will come although nothing ends."""
        return False

    def on_recorded(self, eval_id: str) -> Sequence[str]:
        """Use a recorded outcome; return the evaluations to sweep on the held-out configs."""
        return ()

    def on_steered(self, event: ev.Steered) -> None:
        """Follow a command that was applied."""
        return

    def on_pause(self) -> None:
        """Record results that waited for others, before an outage pauses the run."""
        return

    def close(self) -> None:
        """End every thread of the search."""
        return
