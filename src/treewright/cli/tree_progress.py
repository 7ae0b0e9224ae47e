"""Progress of a tree run: lines on stderr, and live bars on a terminal."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from treewright.cli.options import is_verbose
from treewright.kernel.procs.capped_log import read_last_line
from treewright.kernel.text import numbers
from treewright.kernel.text.printable import visible
from treewright.tree.deciding import rounds
from treewright.tree.deciding.scoring import INCOMPLETE_ROWS, OF_METRICS
from treewright.tree.records import events as ev
from treewright.tree.records import layout, steering
from treewright.tree.records.model import BANNED, UNSET, EvalOutcome, Manifest, SkippedIdea
from treewright.tree.report.run_facts import read_title
from treewright.tree.run.creation import describe_policy

_MAX_TITLE_LENGTH = 60


@dataclass
class Pace:
    """The mean duration and the parallelism of evaluations, from which the rest is estimated."""

    most_at_once: int = 1
    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.count += 1
        self.seconds += seconds

    def estimate(self, elapsed: Sequence[float], waiting: int) -> float | None:
        """Return the seconds until all evaluations are done; None before the first has finished.

        Args:
            elapsed: Seconds since the start of each running evaluation.
            waiting: Number of queued evaluations.
        """
        if not self.count:
            return None
        mean = self.seconds / self.count
        remaining = [max(0.0, mean - seconds) for seconds in elapsed]
        shared = (sum(remaining) + waiting * mean) / self.most_at_once
        return max(shared, max(remaining, default=0.0))


class _Eta(ProgressColumn):
    max_refresh = 0.5

    def __init__(self, estimate: Callable[[TaskID], float | None]) -> None:
        super().__init__()
        self._of = estimate

    def render(self, task: Task) -> Text:
        left = self._of(task.id)
        return Text("" if left is None else f"ETA {timedelta(seconds=round(left))}")


class _LogLines(logging.Handler):
    """Prints log records of the search among the other lines."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "warning: " if record.levelno >= logging.WARNING else ""
        if is_verbose():
            prefix = time.strftime("%H:%M:%S ") + prefix
        self._say(prefix + self.format(record))


class SearchProgress:
    """An observer that prints the events of a run. `resume` must be called once the run is open."""

    def __init__(self) -> None:
        self.console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._handlers_before: list[logging.Handler] = []
        self._run_dir: Path | None = None
        self._manifest: Manifest | None = None
        self._titles: dict[str, str] = {}
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[done]}"),
            TimeElapsedColumn(),
            _Eta(self._estimate),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._depth = self._bars.add_task("", total=None, visible=False, done="")
        self._queued_evals = self._finished_evals = 0
        self._steady = False
        self._running: dict[str, tuple[TaskID, float]] = {}
        self._pace = Pace()

    def __enter__(self) -> SearchProgress:
        logger = logging.getLogger("treewright")
        self._handlers_before = logger.handlers
        logger.handlers, logger.propagate = [_LogLines(self.say)], False
        logger.setLevel(logging.DEBUG if is_verbose() else logging.INFO)
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()
        logging.getLogger("treewright").handlers = self._handlers_before

    def say(self, line: str) -> None:
        self._bars.console.print(escape(visible(line)))

    def __call__(self, event: ev.Event) -> None:
        match event:
            case ev.RunCreated():
                shape = event.manifest
                is_beam = shape.policy_record is None
                how = f"beam {shape.beam_width}" if is_beam else describe_policy(shape)
                self.say(
                    f"run {shape.tree_run_id}: {shape.ideas_per_node} ideas a node, {how}, "
                    f"depth {shape.max_depth}" + (", dry run" if shape.dry_run else "")
                )
            case ev.NodeExpanded():
                said = f"{_many(event.ideas, 'idea')}{describe_skipped(event.skipped)}"
                self.say(f"depth {event.depth}: {event.node_id}: {said}")
            case ev.Queued():
                self._queued(event)
            case ev.Started():
                self._started(event)
            case ev.Requeued():
                self._ended(event.eval_id)
                self.say(f"  {event.eval_id}  back in the queue: {event.reason}")
            case ev.Completed() | ev.Failed():
                self._ended(event.eval_id, finished=True)
                self.say(f"  {event.eval_id}  {_verdict(event.outcome)}  {self._title(event)}")
                if said := self._sweep_words(event):
                    self.say(f"             the sweep said: {said}")
            case ev.Confirmed():
                self.say(f"  {event.eval_id}  {_confirmation(event)}")
            case ev.Decided():
                self._decided(event)
            case ev.Settled():
                if event.node is not None:
                    self.say(f"  {event.eval_id}  promoted to {event.node.node_id}")
            case ev.Stopped():
                self.say(f"stop: {event.reason}")
            case ev.Steered():
                self.say(steering.describe(event.record))
            case _:
                pass

    def resume(self, run_dir: Path, manifest: Manifest) -> None:
        """Set the run, and count the evaluations that were queued by an earlier call."""
        self._run_dir, self._manifest = run_dir, manifest
        if manifest.stop_reason is not None:
            self.say(f"run {manifest.tree_run_id} had stopped: {manifest.stop_reason}")
        for evaluation in manifest.evaluations.values():
            if evaluation.decision is None:
                self._read_title(evaluation.eval_id, evaluation.idea_path)
                self._queued_evals += 1
                self._finished_evals += evaluation.status in ("completed", "failed")
        self._steady = manifest.policy_record is not None
        if self._queued_evals:
            self._show(manifest.current_depth + 1)

    def _sweep_words(self, event: ev.Completed | ev.Failed) -> str:
        """Return the last line of the sweep, if it did not measure every config."""
        compared = event.outcome.parent_relative
        is_incomplete = compared is not None and INCOMPLETE_ROWS in compared.reasons
        if self._run_dir is None or not is_incomplete or event.outcome.results_from is not UNSET:
            return ""
        return read_last_line(self._run_dir / layout.experiment(event.eval_id) / layout.SWEEP_LOG)

    def _read_title(self, eval_id: str, idea_path: str) -> None:
        if self._run_dir is not None:
            self._titles[eval_id] = read_title(self._run_dir / idea_path)[:_MAX_TITLE_LENGTH]

    def _queued(self, event: ev.Queued) -> None:
        self._read_title(event.eval_id, event.idea_path)
        self._queued_evals += 1
        self._show(event.depth)

    def _show(self, depth: int) -> None:
        """Show the bar over all evaluations of the depth, or of a run without depths."""
        name = "evaluations" if self._steady else f"depth {depth}"
        self._bars.update(self._depth, visible=True, description=name)
        self._count()

    def _started(self, event: ev.Started) -> None:
        label = escape(visible(f"  {event.eval_id} {self._title(event)}"))
        task = self._bars.add_task(label, total=None, done="")
        self._running[event.eval_id] = (task, time.monotonic())
        self._pace.most_at_once = max(self._pace.most_at_once, len(self._running))

    def _ended(self, eval_id: str, *, finished: bool = False) -> None:
        running = self._running.pop(eval_id, None)
        if running is not None:
            self._bars.remove_task(running[0])
        if finished:
            if running is not None:
                self._pace.add(time.monotonic() - running[1])
            self._finished_evals += 1
            self._count()

    def _count(self) -> None:
        self._bars.update(
            self._depth,
            total=self._queued_evals,
            completed=self._finished_evals,
            done=f"{self._finished_evals}/{self._queued_evals}",
        )

    def _estimate(self, task: TaskID) -> float | None:
        """Return the seconds until the depth is evaluated, or None if there is no estimate."""
        if task != self._depth:
            return None
        now = time.monotonic()
        elapsed = [now - started for _, started in self._running.values()]
        waiting = self._queued_evals - self._finished_evals - len(elapsed)
        return self._pace.estimate(elapsed, waiting)

    def _title(self, event: ev.Started | ev.Completed | ev.Failed) -> str:
        return self._titles.get(event.eval_id, "")

    def _decided(self, event: ev.Decided) -> None:
        promoted = [node.node_id for node in event.nodes]
        said = f"promoted {', '.join(promoted)}" if promoted else "nothing promoted"
        stop = f"; stop: {event.stop_reason}" if event.stop_reason else ""
        self.say(f"depth {event.depth}: {said}{stop}")
        fates = [decision.fate for decision in event.decisions.values()]
        if fates and fates.count("evaluation_failed") == len(fates):
            self.say(f"warning: every evaluation of depth {event.depth} failed; look at their logs")
        if event.stop_reason == "empty_frontier" and self._manifest is not None:
            flags = continuation_flags(self._manifest, event.depth)
            self.say(f"  ({flags} continues with more ideas for the same nodes)")
        self._queued_evals = self._finished_evals = 0
        self._bars.reset(self._depth, visible=False)


def continuation_flags(manifest: Manifest, depth: int) -> str:
    """Return the flags that continue a run after a depth that promoted no node."""
    deeper = f" --max-depth {depth + 1}" if depth >= manifest.max_depth else ""
    return f"--extend --patience {rounds.setting(manifest, 'patience') + 1}{deeper}"


def describe_skipped(skipped: Sequence[SkippedIdea]) -> str:
    """Return the numbers of banned and duplicate ideas, as the end of a line."""
    banned = [each for each in skipped if each.duplicate_of.startswith(BANNED)]
    said = f", {len(banned)} banned" if banned else ""
    known = len(skipped) - len(banned)
    return (f", {_many(range(known), 'duplicate')} skipped" if known else "") + said


def _many(things: Sized, name: str) -> str:
    return f"{len(things)} {name}" + ("" if len(things) == 1 else "s")


def _verdict(outcome: EvalOutcome) -> str:
    if outcome.error is not None:
        log = f" (log: {outcome.error.log_path})" if outcome.error.log_path else ""
        return f"failed     {outcome.error.code}: {outcome.error.message}{log}"
    recommendation = outcome.root_relative
    assert recommendation is not None
    assert outcome.parent_relative is not None
    parent = outcome.parent_relative
    why = "" if parent.should_explore else f"  ({', '.join(parent.reasons)})"
    if not OF_METRICS.issuperset(parent.reasons):
        return f"{parent.grade:<10} not comparable{why}"
    gains = f"{parent.score:+.2%} on its parent, {recommendation.score:+.2%} on the root"
    return f"{parent.grade:<10} {gains}{why}"


def _confirmation(event: ev.Confirmed) -> str:
    confirmation = event.confirmation
    if not confirmation.held:
        return f"not confirmed on held-out configs: {', '.join(confirmation.reasons)}"
    shrinkage = confirmation.shrinkage
    return "confirmed on held-out configs" + (
        f" (shrinkage {numbers.whole_percent(shrinkage, '')})" if shrinkage is not None else ""
    )
