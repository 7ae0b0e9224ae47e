"""The owner of a run: applies the user's commands, advances the search, repairs after a crash."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from treewright.kernel.executors.inline import InlineExecutor
from treewright.kernel.procs import proctree
from treewright.tree.config import Config
from treewright.tree.evaluating import worker
from treewright.tree.records import events as ev
from treewright.tree.records import usage_log
from treewright.tree.records.model import Manifest, Unset
from treewright.tree.records.steering import applied, is_paused
from treewright.tree.records.store import RunStore
from treewright.tree.run import cleanup, command_effects, faults
from treewright.tree.run.command_files import StopWatcher
from treewright.tree.run.faults import Halted
from treewright.tree.run.loop import ControlState, ExecutorFactory, WorkLoop
from treewright.tree.run.root_commands import RootCheck, RootCommands
from treewright.tree.run.tree_search import RunParts, TreeSearch

_PAUSE_TICK_SECONDS = 0.3
_log = logging.getLogger("treewright")


@dataclass(slots=True)
class Coordinator:
    """The only writer of a run; advances the search of a run that this process owns."""

    parts: RunParts
    search: TreeSearch
    make_executor: ExecutorFactory = InlineExecutor
    _root_check: RootCheck = field(init=False)

    def __post_init__(self) -> None:
        parts = self.parts
        self._root_check = RootCheck(
            RootCommands(parts.config, parts.worktrees, parts.manifest.root_commit, parts.owner),
            parts.expected[0],
            parts.fence,
            parts.options.failure_rules.timeout_seconds,
        )

    @property
    def store(self) -> RunStore:
        return self.parts.store

    @property
    def manifest(self) -> Manifest:
        return self.parts.manifest

    @property
    def config(self) -> Config:
        return self.parts.config

    def finish(self, after_each: Callable[[], object] = lambda: None) -> None:
        """Advance until the search is over."""
        while self.advance():
            after_each()

    def advance(self) -> bool:
        """Advance beam search by a depth, any other search to its end.

        Returns False if the run had stopped before.
        """
        self.apply_commands()
        if self.manifest.stop_reason is not None or self.parts.options.meter.is_out_of_time:
            return False
        with StopWatcher(self.store.run_dir, self.parts.cancel):
            try:
                self._wait_while_paused()
                self._work_through_stages()
            except Halted:
                self._record_reached_cap()
                self.store.snapshot()
            except KeyboardInterrupt:
                self.apply_commands()
                if self.manifest.stop_reason != "stopped":
                    raise
                self.store.snapshot()
        return True

    def recover(self) -> None:
        """Repair the traces of an owner that died: its processes, evaluations and worktrees."""
        parts, run_dir = self.parts, self.store.run_dir
        cleanup.end_orphans(run_dir, self.store.lease.epoch)
        running = [e for e in self.manifest.evaluations.values() if e.status == "running"]
        if running:
            died, boot_id = self.store.lease.owner.takeover == "dead", proctree.boot_id()
            lost: list[ev.Requeued | ev.Failed] = []
            for evaluation in running:
                # A power cut ends every search, so it is no reason to suspect an evaluation.
                is_crash = died and evaluation.boot_id == boot_id
                company = len(running) - 1 if is_crash else None
                spent, roles = usage_log.spent(run_dir / evaluation.experiment_dir)
                lost.append(faults.decide_loss(evaluation, company, spent, roles))
            self.store.record(*lost)
        cleanup.repair(run_dir, self.manifest, parts.worktrees, parts.options.retention)
        parts.expander.tidy(self.manifest)
        self.search.keep_files()

    def _work_through_stages(self) -> None:
        """Run every stage of the search; all work has ended when this returns."""
        stage = self.search.begin(self._wait_while_paused)
        if stage is None:
            return
        parts = self.parts
        do = worker.Worker(
            parts.fence, parts.deciding_files, parts.known_results, dry_run=self.manifest.dry_run
        )
        executor = self.make_executor(do)
        loop = WorkLoop(parts, self.search, executor, self.control_state, self._root_check)
        try:
            while stage is not None:
                loop.run(stage)
                stage = self.search.next_stage()
        except BaseException:
            parts.cancel.set()
            raise
        finally:
            try:
                executor.close()
            finally:
                self.search.close()

    # -- steering -------------------------------------------------------------------------

    def apply_commands(self) -> None:
        """Apply the waiting commands of the user that can be applied at this moment."""
        inbox = self.parts.inbox
        for file in inbox.waiting():
            known = self.manifest.steering
            names = [] if isinstance(known, Unset) else [r.command.command_id for r in known]
            if file.command.command_id not in names:
                if not self.search.can_apply(file.command):
                    continue
                event = command_effects.apply(self.manifest, file, self.parts.expander)
                self.store.record(event)
                if event.record.refused is None:
                    self.search.on_steered(event)
            inbox.remove(file)

    def control_state(self) -> ControlState:
        """Return whether the user's commands and the caps let work start."""
        self.apply_commands()
        if self.manifest.stop_reason == "stopped":
            return "end"
        if is_paused(applied(self.manifest.steering)):
            return "wait"
        return self.parts.options.meter.control_state(self.manifest)

    def _wait_while_paused(self) -> None:
        """Return once work may start; raise Halted if none may start any more."""
        is_announced = False
        while (state := self.control_state()) == "wait":
            self.parts.stop_if_cancelled()
            if not is_announced and is_paused(applied(self.manifest.steering)):
                _log.info("paused; `treewright steer RUN resume` lets it go on")
            is_announced = True
            self.parts.cancel.wait(_PAUSE_TICK_SECONDS)
        if state == "end":
            raise Halted

    def _record_reached_cap(self) -> None:
        """Record that a cap ended the run; --max-hours ends only the invocation."""
        meter = self.parts.options.meter
        if not meter.why or self.manifest.stop_reason is not None:
            return
        _log.warning("%s; what is under way was finished first", meter.why)
        if not meter.is_out_of_time:
            self.store.record(ev.Stopped(reason="cap_reached"))
