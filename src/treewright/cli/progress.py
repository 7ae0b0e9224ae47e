"""What people see of a running search: lines on stderr, and on a terminal live bars."""

from __future__ import annotations

import logging
from pathlib import Path

from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from treewright.tree import events as ev
from treewright.tree.ideas import text as idea_text
from treewright.tree.model import EvalOutcome, Manifest

_LONGEST_TITLE = 60


class SearchProgress:
    """An observer of events; `resume` tells it of the run once that is known."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._run_dir: Path | None = None
        self._titles: dict[str, str] = {}
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
            speed_estimate_period=3600,
        )
        self._depth = self._bars.add_task("", total=None, visible=False)
        self._queued_evals = 0
        self._running: dict[str, TaskID] = {}

    def __enter__(self) -> SearchProgress:
        handler = RichHandler(
            console=self.console, show_time=False, show_path=False, show_level=False
        )
        handler.setFormatter(logging.Formatter("warning: %(message)s"))
        logging.getLogger("treewright").handlers = [handler]
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()
        logging.getLogger("treewright").handlers = []

    def say(self, line: str) -> None:
        self._bars.console.print(escape(line))

    def __call__(self, event: ev.Event) -> None:
        match event:
            case ev.RunCreated():
                shape = event.manifest
                self.say(
                    f"run {shape.tree_run_id}: {shape.ideas_per_node} ideas a node, beam "
                    f"{shape.beam_width}, depth {shape.max_depth}"
                    + (", dry run" if shape.dry_run else "")
                )
            case ev.NodeExpanded():
                skipped = f", {len(event.skipped)} duplicates skipped" if event.skipped else ""
                self.say(f"depth {event.depth}: {event.node_id}: {len(event.ideas)} ideas{skipped}")
            case ev.Queued():
                self._queued(event)
            case ev.Started():
                self._started(event)
            case ev.Requeued():
                self._ended(event.eval_id)
                self.say(f"  {event.eval_id}  back in the queue: {event.reason}")
            case ev.Completed() | ev.Failed():
                self._ended(event.eval_id)
                self._bars.advance(self._depth)
                self.say(f"  {event.eval_id}  {_verdict(event.outcome)}  {self._title(event)}")
            case ev.Confirmed():
                self.say(f"  {event.eval_id}  {_confirmation(event)}")
            case ev.Decided():
                self._decided(event)
            case ev.Stopped():
                self.say(f"stop: {event.reason}")
            case _:
                pass

    def resume(self, run_dir: Path, manifest: Manifest) -> None:
        """Tells of the run; its evaluations that were queued before are shown as such."""
        self._run_dir = run_dir
        for evaluation in manifest.evaluations.values():
            if evaluation.decision is None:
                self._read_title(evaluation.eval_id, evaluation.idea_path)

    def _read_title(self, eval_id: str, idea_path: str) -> None:
        if self._run_dir is not None:
            text = (self._run_dir / idea_path).read_text(encoding="utf-8")
            self._titles[eval_id] = idea_text.title(text)[:_LONGEST_TITLE]

    def _queued(self, event: ev.Queued) -> None:
        self._read_title(event.eval_id, event.idea_path)
        self._queued_evals += 1
        self._bars.update(
            self._depth,
            total=self._queued_evals,
            visible=True,
            description=f"depth {event.depth}",
        )

    def _started(self, event: ev.Started) -> None:
        label = escape(f"  {event.eval_id} {self._title(event)}")
        self._running[event.eval_id] = self._bars.add_task(label, total=None)

    def _ended(self, eval_id: str) -> None:
        task = self._running.pop(eval_id, None)
        if task is not None:
            self._bars.remove_task(task)

    def _title(self, event: ev.Started | ev.Completed | ev.Failed) -> str:
        return self._titles.get(event.eval_id, "")

    def _decided(self, event: ev.Decided) -> None:
        promoted = [node.node_id for node in event.nodes]
        said = f"promoted {', '.join(promoted)}" if promoted else "nothing promoted"
        stop = f"; stop: {event.stop_reason}" if event.stop_reason else ""
        self.say(f"depth {event.depth}: {said}{stop}")
        self._queued_evals = 0
        self._bars.reset(self._depth, visible=False)


def _verdict(outcome: EvalOutcome) -> str:
    if outcome.error is not None:
        return f"failed     {outcome.error.code}: {outcome.error.message}"
    recommendation = outcome.root_relative
    assert recommendation is not None
    assert outcome.parent_relative is not None
    parent = outcome.parent_relative
    why = "" if parent.should_explore else f"  ({', '.join(parent.reasons)})"
    return f"{parent.grade:<10} root {recommendation.score:+.2%}{why}"


def _confirmation(event: ev.Confirmed) -> str:
    confirmation = event.confirmation
    if not confirmation.held:
        return f"not confirmed on held-out configs: {', '.join(confirmation.reasons)}"
    shrinkage = confirmation.shrinkage
    return "confirmed on held-out configs" + (
        f" (shrinkage {shrinkage:.0%})" if shrinkage is not None else ""
    )
