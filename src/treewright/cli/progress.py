"""What people see of a running search: lines on stderr, with a bar where it is a terminal."""

from __future__ import annotations

import logging
from pathlib import Path

from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from treewright.tree import events as ev
from treewright.tree.ideas import text as idea_text
from treewright.tree.model import EvalOutcome


class SearchProgress:
    """An observer of events. `run_dir` is set once the run is known."""

    def __init__(self, metric: str = "primary") -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.run_dir: Path | None = None
        self._metric = metric
        self._titles: dict[str, str] = {}
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None, visible=False)

    def __enter__(self) -> SearchProgress:
        handler = RichHandler(
            console=self.console, show_time=False, show_path=False, show_level=False
        )
        handler.setFormatter(logging.Formatter("warning: %(message)s"))
        logging.getLogger("treewright").handlers = [handler]
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        logging.getLogger("treewright").handlers = []

    def say(self, line: str) -> None:
        self._bar.console.print(escape(line))

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
                self._bar.update(self._task, description=f"{event.eval_id} {self._title(event)}")
            case ev.Completed() | ev.Failed():
                self._bar.advance(self._task)
                self.say(f"  {event.eval_id}  {_verdict(event.outcome)}  {self._title(event)}")
            case ev.Confirmed():
                self.say(f"  {event.eval_id}  {_confirmation(event)}")
            case ev.Decided():
                self._decided(event)
            case ev.Stopped():
                self.say(f"stop: {event.reason}")
            case _:
                pass

    def _queued(self, event: ev.Queued) -> None:
        if self.run_dir is not None:
            path = self.run_dir / event.idea_path
            self._titles[event.eval_id] = idea_text.title(path.read_text(encoding="utf-8"))
        done = self._bar.tasks[self._task]
        total = (done.total or 0) + 1
        self._bar.update(self._task, total=total, visible=True)

    def _title(self, event: ev.Started | ev.Completed | ev.Failed) -> str:
        return self._titles.get(event.eval_id, "")[:70]

    def _decided(self, event: ev.Decided) -> None:
        promoted = [node.node_id for node in event.nodes]
        said = f"promoted {', '.join(promoted)}" if promoted else "nothing promoted"
        stop = f"; stop: {event.stop_reason}" if event.stop_reason else ""
        self.say(f"depth {event.depth}: {said}{stop}")
        self._bar.update(self._task, total=0, completed=0, visible=False)


def _verdict(outcome: EvalOutcome) -> str:
    if outcome.error is not None:
        return f"failed     {outcome.error.code}: {outcome.error.message}"
    recommendation = outcome.root_relative
    assert recommendation is not None
    assert outcome.parent_relative is not None
    grade = outcome.parent_relative.grade
    return f"{grade:<10} root {recommendation.score:+.2%}"


def _confirmation(event: ev.Confirmed) -> str:
    confirmation = event.confirmation
    if not confirmation.held:
        return f"not confirmed on held-out configs: {', '.join(confirmation.reasons)}"
    shrinkage = confirmation.shrinkage
    return "confirmed on held-out configs" + (
        f" (shrinkage {shrinkage:.0%})" if shrinkage is not None else ""
    )
