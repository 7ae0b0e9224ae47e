"""The only writer of a run: what every kind of search has in common.

Each step looks at the manifest, does what is still missing, and records it before
going on; so the same code starts a search and continues one after a crash. Which evaluation
comes next, and when its fate is decided, is what `by_depth` and `steady` add.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from treewright.kernel.executors.inline import InlineExecutor
from treewright.kernel.procs import proctree
from treewright.kernel.procs.cancellation import Deadline, Fence
from treewright.tree.config import Config
from treewright.tree.evaluating import work
from treewright.tree.evaluating.earlier_results import EarlierResults
from treewright.tree.evaluating.heldout import HeldoutOutcome, HeldoutRequest
from treewright.tree.evaluating.known_results import KnownResults
from treewright.tree.evaluating.preflight import Preflight
from treewright.tree.evaluating.request import EvalRequest
from treewright.tree.evaluating.sweep import SweepError, slot_variables
from treewright.tree.guard.baselines import DecidingFiles
from treewright.tree.ideas.expansion import Expander
from treewright.tree.records import events as ev
from treewright.tree.records import usage_log
from treewright.tree.records.model import EvalOutcome, Evaluation, Manifest, Node, Unset
from treewright.tree.records.steering import Command, applied, is_paused
from treewright.tree.records.store import RunStore
from treewright.tree.repository.git import GitError, GitKilled
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.run import cleanup, extending, faults, steering
from treewright.tree.run.assigning import Word
from treewright.tree.run.cleanup import Retention
from treewright.tree.run.confirmation import Confirmer
from treewright.tree.run.creation import ROOT_NODE, expected_ids
from treewright.tree.run.dispatch import Dispatcher, ExecutorFactory
from treewright.tree.run.failure_rules import FailureRules
from treewright.tree.run.faults import Halted
from treewright.tree.run.inbox import Inbox, Watch
from treewright.tree.run.meter import Meter, caps_of
from treewright.tree.run.requests import Requests

_PAUSE_TICK = 0.3
_LOOK_IS_GOOD_FOR = 10
"""So many times as long as it took to look at the root: the share of the time that looks cost."""
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
    meter: Meter = field(default_factory=Meter)
    workers: int = 1
    works_here: bool = True
    has_barrier: bool = field(default=False, init=False)
    _expected: list[int] = field(init=False)
    _worktrees: Worktrees = field(init=False)
    _expander: Expander = field(init=False)
    _confirmer: Confirmer = field(init=False)
    _fence: Fence = field(init=False)
    _deciding: DecidingFiles = field(init=False)
    _known: KnownResults = field(init=False)
    _requests: Requests = field(init=False)
    _looks: dict[str, tuple[float, bool]] = field(default_factory=dict, init=False)
    _owner: str = field(default="", init=False)
    _inbox: Inbox = field(init=False)
    _capacity: int = field(default=1, init=False)

    def __post_init__(self) -> None:
        self._deciding = DecidingFiles(
            self.store.run_dir, self.repo, self.manifest.tree_run_id, self.manifest.dry_run
        )
        root = self.manifest.nodes[ROOT_NODE].artifacts.baseline
        assert root is not None
        self._expected = expected_ids(self.manifest, self.config, self._deciding.read(root).data)
        earlier = EarlierResults()
        if self.config.sweep.reuse_results and not self.manifest.dry_run:
            earlier = EarlierResults.of(self.store.run_dir.parent, self.manifest)
        self._known = KnownResults.of(self.manifest, self._deciding, earlier)
        self._worktrees = Worktrees(self.repo, self.store.run_dir, self.manifest.tree_run_id)
        self._fence = Fence(self.cancel, self.store.lease.check)
        self._inbox = Inbox(self.store.run_dir)
        self._expander = Expander(
            self.repo, self.store.run_dir, self.config, self.owner, self._fence
        )
        self._requests = Requests(
            self.store, self.repo, self.config, self._deciding, self._expected, self.owner
        )
        self._confirmer = Confirmer(
            self._worktrees, self.config, self._deciding, self.owner, self._fence
        )

    def advance(self) -> bool:
        """Goes on with the search; False if it had stopped before."""
        self._steer()
        if self.manifest.stop_reason is not None or self.meter.is_out_of_time:
            return False
        with Watch(self.store.run_dir, self.cancel):
            try:
                self._wait_or_halt()
                self._go_on()
            except Halted:
                self._say_what_was_reached()
                self.store.snapshot()
            except KeyboardInterrupt:
                self._steer()
                if self.manifest.stop_reason != "stopped":
                    raise
                self.store.snapshot()
        return True

    def finish(self, after_each: Callable[[], object] = lambda: None) -> None:
        """Goes on until the search is over."""
        while self.advance():
            after_each()

    @abstractmethod
    def _go_on(self) -> None:
        """Works on the search until there is a stop reason, or a depth is done."""

    @property
    def manifest(self) -> Manifest:
        return self.store.manifest

    @property
    def owner(self) -> str:
        """Marks processes as this run's; the epoch says whose of its owners'."""
        if not self._owner:
            self._owner = cleanup.process_owner(self.store.run_dir, self.store.lease.epoch)
        return self._owner

    def recover(self) -> None:
        """Puts right what an owner that died left behind. Cheap if there is nothing."""
        cleanup.end_orphans(self.store.run_dir, self.store.lease.epoch)
        running = [e for e in self.manifest.evaluations.values() if e.status == "running"]
        if running:
            died, boot_id = self.store.lease.owner.takeover == "dead", proctree.boot_id()
            lost: list[ev.Requeued | ev.Failed] = []
            for e in running:
                # A power cut ends every search, whatever its candidates do.
                company = len(running) - 1 if died and e.boot_id == boot_id else None
                spent = usage_log.spent(self.store.run_dir / e.experiment_dir)
                lost.append(faults.after_loss(e, company, *spent))
            self.store.record(*lost)
        cleanup.repair(self.store.run_dir, self.manifest, self._worktrees, self.retention)
        self._expander.tidy(self.manifest)
        self._hold()

    # -- steering -------------------------------------------------------------------------

    def _steer(self) -> None:
        """Applies what somebody wants changed, as far as this is the place for it."""
        for letter in self._inbox.waiting():
            known = self.manifest.steering
            names = [] if isinstance(known, Unset) else [r.command.command_id for r in known]
            if letter.command.command_id not in names:
                if not self._may_apply(letter.command):
                    continue
                event = steering.apply(self.manifest, letter, self._expander)
                self.store.record(event)
                if event.record.refused is None:
                    self._changed(event)
            self._inbox.remove(letter)

    def _may_apply(self, command: Command) -> bool:
        """Whether this is the place for it."""
        return command.action not in steering.OF_THE_TREE or not extending.in_round(self.manifest)

    def _changed(self, event: ev.Steered) -> None:
        """What is in memory follows what was changed. By depth, nothing is."""
        return

    def word(self) -> Word:
        self._steer()
        if self.manifest.stop_reason == "stopped":
            return "end"
        if is_paused(applied(self.manifest.steering)):
            return "wait"
        return self.meter.word(self.manifest)

    def may_start(self) -> bool:
        return self.meter.may_start(self.manifest)

    def fell_short(self, eval_id: str) -> None:
        self.meter.fell_short(eval_id)

    def held(self, eval_id: str, outcome: EvalOutcome) -> None:
        self.meter.held(eval_id, outcome)

    def _say_what_was_reached(self) -> None:
        """A run that its caps ended says so; the hours of this call are no end of the run."""
        if not self.meter.why or self.manifest.stop_reason is not None:
            return
        _log.warning("%s; what is under way was finished first", self.meter.why)
        if not self.meter.is_out_of_time:
            self.store.record(ev.Stopped(reason="cap_reached"))

    def _wait_or_halt(self) -> None:
        """Returns when there is something to do, and not while the run is paused."""
        said = False
        while (word := self.word()) == "wait":
            self._stop_if_cancelled()
            if not said and is_paused(applied(self.manifest.steering)):
                _log.info("paused; `treewright steer RUN resume` lets it go on")
            said = True
            self.cancel.wait(_PAUSE_TICK)
        if word == "end":
            raise Halted

    def _generations_at_once(self) -> int:
        """For how many nodes ideas may be thought of at the same time. Under caps one after the
        other: what the next may cost is known when the one before is paid."""
        return 1 if caps_of(self.manifest) else self.workers

    def _stop_if_cancelled(self) -> None:
        if self.cancel.is_set():
            raise KeyboardInterrupt

    def _dispatch(self, eval_ids: Iterable[str] = (), to_measure: Iterable[str] = ()) -> None:
        """Hands out work until all of it is done; nothing of it runs on when this ends."""
        do = work.Worker(self._fence, self._deciding, self._known, dry_run=self.manifest.dry_run)
        executor = self.make_executor(do)
        self._capacity = executor.capacity
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

    def more(self, room: int) -> Sequence[str]:
        return ()

    def is_preparing(self) -> bool:
        return False

    def finished(self, eval_id: str) -> Sequence[str]:
        self._known.add([self.manifest.evaluations[eval_id]])
        return ()

    def over(self, eval_id: str) -> None:
        self._known.over(eval_id)

    def sweep_works(self, slot: int | None = None, *, anew: bool = False) -> bool:
        """Whether the sweep still does what it did when the run began."""
        root, first = self.manifest.root_commit, self._expected[0]
        return self._works("sweep", slot, anew, lambda preflight: preflight.check(root, first))

    def tests_work(self, slot: int | None = None, *, anew: bool = False) -> bool:
        """Likewise of the tests."""
        root = self.manifest.root_commit
        return self._works("tests", slot, anew, lambda preflight: preflight.check_tests(root))

    def _works(
        self, what: str, slot: int | None, anew: bool, look: Callable[[Preflight], object]
    ) -> bool:
        """Tried on the root, within an evaluation's time. Either answer is good for a while, so
        that no row of failures is one of sweeps as well. A look that could not be had is no better
        than one that failed: candidates' code may see to either."""
        if self.manifest.dry_run:
            return True
        began = time.monotonic()
        until, works = self._looks.get(what, (began, True))
        if began < until and not anew:
            return works
        limit = Deadline(self._fence, self.failure_rules.timeout_seconds)
        variables = slot_variables(self.config, slot)
        try:
            look(Preflight(self.config, self._worktrees, self.owner, limit, variables))
            works = True
        except (SweepError, GitError, GitKilled, OSError) as error:
            if faults.is_full_disk(error):
                raise
            _log.warning("%s", error)
            works = False
        ended = time.monotonic()
        self._looks[what] = (ended + _LOOK_IS_GOOD_FOR * (ended - began), works)
        return works

    def request(self, evaluation: Evaluation, attempt: int) -> EvalRequest:
        return self._requests.evaluation(
            evaluation,
            attempt,
            timeout_seconds=self.failure_rules.timeout_seconds,
            allowance=self.meter.allow(self.manifest, evaluation.eval_id, self._capacity),
        )

    def heldout_request(self, evaluation: Evaluation, attempt: int) -> HeldoutRequest:
        if not self.manifest.dry_run:
            _log.info("  %s  measured again on the held-out configs", evaluation.eval_id)
        idea = self._requests.idea(evaluation)
        return self._confirmer.request(self.manifest, evaluation, attempt, idea)

    # -- deciding -------------------------------------------------------------------------

    def _promote_and_prune(self, nodes: Iterable[Node], decided: Iterable[Evaluation]) -> None:
        """After the facts are recorded: nodes are pinned and checked out, candidates go."""
        trees = None if self.manifest.dry_run else self._worktrees
        for node in nodes if trees is not None else ():
            self._worktrees.add_node(node.node_id, node.commit)
        cleanup.prune(self.store.run_dir, decided, trees, self.retention)

    def _hold(self) -> None:
        """Takes what decides from now on into memory, also what came from other machines."""
        self._deciding.load_all(self.manifest)
