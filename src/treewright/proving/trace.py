"""`trace.jsonl`: written by the owner of the run's lease, read back to continue or replay a run.

Lines are in the order of what happened. A line torn by a crash is cut off when the run is
continued. Lines that a replaced owner still wrote have an older epoch and are left out.

A search is a function of its seed and of the recorded answers of tactic sources and Lean. With
these it runs again to its last iteration without Lean, and continues from there with Lean. A replay
checks a trace in the same way.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from treewright.kernel.errors import StorageError, TreewrightError
from treewright.kernel.storage import journal
from treewright.kernel.storage.atomic import storage_errors
from treewright.kernel.text import jsontext
from treewright.lean.session.knowledge import Knowledge
from treewright.proving.environment import Environment, Outcome, Subgoal
from treewright.proving.records import (
    Attempt,
    Candidate,
    GoalOpened,
    GoalView,
    Iteration,
    NodeRecord,
    PhaseKind,
    Refusal,
    TraceLine,
)
from treewright.proving.tactics.source import OFFERED_SOURCES, Suggestions

CLOCK_FIELDS = frozenset({"epoch", "at", "elapsed", "ms"})
"""Fields that depend on the clock or the process; comparisons leave them out."""
_SYNC_EVERY_SECONDS = 1.0

_decoder = jsontext.decoder(TraceLine)
_encode = msgspec.json.Encoder().encode


def read_trace(path: Path) -> list[TraceLine]:
    """Return the valid lines. Raises StorageError if the file is damaged."""
    lines: list[TraceLine] = []
    for raw in journal.read(path):
        try:
            line = _decoder(raw.raw)
        except msgspec.DecodeError as error:
            raise StorageError(f"{path}: a line before byte {raw.end} is wrong: {error}") from None
        while lines and _superseded(lines[-1], line):
            lines.pop()
        lines.append(line)
    return lines


def _superseded(earlier: TraceLine, line: TraceLine) -> bool:
    """Return whether `earlier` is a step of a replaced owner that the new owner repeated.

    Iterations of `prove` are counted over all goals, those of the other phases for each goal.
    """
    return (
        isinstance(earlier, Iteration | Refusal)
        and isinstance(line, Iteration | Refusal)
        and earlier.phase == line.phase
        and (line.phase == "prove" or earlier.goal == line.goal)
        and earlier.epoch < line.epoch
        and _position(earlier) >= _position(line)
    )


def _position(line: Iteration | Refusal) -> tuple[int, bool]:
    """Return the place of a line in its phase: a refusal follows its iteration."""
    return line.iteration, isinstance(line, Refusal)


class TraceWriter:
    """Appends lines.

    They survive the end of the process at once. They survive a power cut from the next append with
    `sync`, or from the first append that begins a second or more after the last sync.
    """

    def __init__(
        self,
        path: Path,
        epoch: int,
        guard: Callable[[], None],
        is_ours: Callable[[], bool] = lambda: False,
    ) -> None:
        """Open the trace for appending; `guard` and `is_ours` are those of journal.Journal."""
        self.epoch = epoch
        _cut_torn_tail(path)
        self._journal = journal.Journal(path, epoch, guard, is_ours)
        self._synced = time.monotonic()

    def append(self, lines: Sequence[TraceLine], *, sync: bool = False) -> None:
        """Append lines; with `sync` they survive a power cut."""
        due = time.monotonic() - self._synced > _SYNC_EVERY_SECONDS
        self._journal.append([_encode(line) for line in lines], sync=sync or due)
        if sync or due:
            self._synced = time.monotonic()

    def close(self) -> None:
        """Close the file."""
        self._journal.close()


def _cut_torn_tail(path: Path) -> None:
    """Cut off an incomplete last line. Only the owner of the lease may do this."""
    if not path.exists():
        return
    end = 0
    for line in journal.read(path):
        end = line.end
    with storage_errors(path):
        if end < path.stat().st_size:
            os.truncate(path, end)


def without_clock(value: object) -> object:
    """Return a line as plain data, without the fields that depend on the clock."""
    if isinstance(value, msgspec.Struct):
        value = msgspec.to_builtins(value)
    if isinstance(value, dict):
        return {k: without_clock(v) for k, v in value.items() if k not in CLOCK_FIELDS}
    if isinstance(value, (list, tuple)):
        return [without_clock(item) for item in value]
    return value


def first_difference(expected: TraceLine, found: TraceLine) -> str:
    """Return where two lines differ, as `field: expected, found`; '' if they are equal."""
    return _differ(without_clock(expected), without_clock(found), "")


def _differ(expected: object, found: object, where: str) -> str:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in {**expected, **found}:
            place = f"{where}.{key}" if where else str(key)
            if difference := _differ(expected.get(key), found.get(key), place):
                return difference
        return ""
    if isinstance(expected, list) and isinstance(found, list):
        for index, pair in enumerate(zip(expected, found, strict=False)):
            if difference := _differ(*pair, f"{where}[{index}]"):
                return difference
        if len(expected) != len(found):
            return f"{where}: {len(expected)} entries recorded, {len(found)} now"
        return ""
    if expected != found:
        return f"{where}: {_show(expected)} recorded, {_show(found)} now"
    return ""


def _show(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 120 else text[:119] + "…"


class TraceError(TreewrightError):
    """The trace does not fit its own run."""


class Recording:
    """The recorded answers of one phase of a goal: of the tactic sources and of Lean."""

    def __init__(self, goal: int, lines: Iterable[TraceLine], phase: PhaseKind = "prove") -> None:
        self.opened: GoalOpened | None = None
        self.iterations: list[Iteration] = []
        self.refusals: list[Refusal] = []
        self.keys: dict[int, str] = {}
        self._attempts: dict[tuple[int, str], Attempt] = {}
        self._suggestions: dict[int, list[Suggestions]] = {}
        self._goals: dict[str, tuple[GoalView, ...]] = {}
        for line in lines:
            if isinstance(line, GoalOpened) and (line.goal, line.phase) == (goal, phase):
                self.opened = line
                self._add_node(line.root)
            elif isinstance(line, Iteration) and (line.goal, line.phase) == (goal, phase):
                self._add_iteration(line)
            elif isinstance(line, Refusal) and (line.goal, line.phase) == (goal, phase):
                self.refusals.append(line)

    def refusals_after(self, iteration: int) -> list[Refusal]:
        """Return the refusals between an iteration and the next one, in their order."""
        return [refusal for refusal in self.refusals if refusal.iteration == iteration]

    def _add_iteration(self, line: Iteration) -> None:
        self.iterations.append(line)
        for record in line.new:
            self._add_node(record)
        if line.node is None:
            return
        if line.candidates is not None:
            answers = self._suggestions.setdefault(line.node, [])
            answers.append(Suggestions(line.candidates, line.complete))
        for attempt in line.attempts:
            self._attempts[line.node, attempt.tactic] = attempt

    def _add_node(self, record: NodeRecord) -> None:
        self._goals[record.key] = record.goals
        self.keys[record.id] = record.key

    @property
    def offered(self) -> tuple[Candidate, ...]:
        """The scripts for the root that were made before the search."""
        first = self.iterations[0].candidates if self.iterations else None
        return tuple(c for c in first or () if c.source in OFFERED_SOURCES)

    def suggestions(self, node: int, round_number: int) -> Suggestions | None:
        """Return the recorded suggestions for a node and a round; None if there are none."""
        answers = self._suggestions.get(node, [])
        return answers[round_number] if round_number < len(answers) else None

    def outcome(self, node: int, tactic: str) -> Outcome | None:
        """Return the recorded outcome of a tactic; None if there is none.

        A rejected edge is returned as `goals`: the tactic worked in Lean, and the graph rejects it
        again.
        """
        attempt = self._attempts.get((node, tactic))
        if attempt is None:
            return None
        if attempt.outcome not in ("goals", "rejected", "duplicate"):
            return Outcome(
                attempt.outcome, ms=attempt.ms, script=attempt.script, detail=attempt.detail
            )
        layouts = attempt.layout or ((),) * len(attempt.keys)
        subgoals = tuple(
            Subgoal(key, self._goals.get(key, ()), layout)
            for key, layout in zip(attempt.keys, layouts, strict=True)
        )
        return Outcome("goals", subgoals, attempt.ms, attempt.script, attempt.detail)


class LiveEnvironment(Environment, Protocol):
    """An environment that can be told the keys of nodes that it did not make itself."""

    def expect(self, node: int, key: str) -> None:
        """Set the key of a node that an earlier process found."""
        ...


class RecordedEnvironment:
    """Answers from a recording as far as it goes, then from the live environment."""

    def __init__(self, recording: Recording, live: LiveEnvironment | None) -> None:
        self._recording = recording
        self._live = live
        if live is not None:
            for node, key in recording.keys.items():
                live.expect(node, key)

    def root(self) -> Subgoal:
        """Return the recorded goal, or open it."""
        opened = self._recording.opened
        if opened is not None:
            goals = opened.root.goals
            return Subgoal(opened.root.key, goals, tuple(range(len(goals))))
        return self._beyond("the goal itself").root()

    def apply(self, node: int, tactic: str) -> Outcome:
        """Return the recorded outcome of a tactic, or try it."""
        known = self._recording.outcome(node, tactic)
        if known is not None:
            return known
        return self._beyond(f"`{tactic}` on node {node}").apply(node, tactic)

    def knowledge(self, node: int) -> Knowledge:
        """Ask the live environment: knowledge is not recorded."""
        return self._beyond(f"what Lean knows about node {node}").knowledge(node)

    def bind(self, parent: int, tactic: str, children: Sequence[int]) -> None:
        """Tell the live environment, if there is one."""
        if self._live is not None:
            self._live.bind(parent, tactic, children)

    def _beyond(self, what: str) -> LiveEnvironment:
        if self._live is None:
            raise TraceError(f"the trace has no answer about {what}")
        return self._live
