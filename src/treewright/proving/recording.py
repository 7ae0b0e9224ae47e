"""What a trace knows of one goal, and an environment that answers from it.

A search is a function of its seed, of what the tactic sources said and of what Lean answered. With
these read back from the trace the search runs again to where it stopped, without Lean, and goes on
from there with it. That is resuming; and it is also how a trace is checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from treewright.kernel.errors import TreewrightError
from treewright.lean.knowledge import Knowledge
from treewright.proving.environment import Environment, Outcome, Subgoal
from treewright.proving.records import (
    Attempt,
    GoalOpened,
    GoalView,
    Iteration,
    NodeRecord,
    TraceLine,
)
from treewright.proving.sources.base import Suggestions


class TraceError(TreewrightError):
    """A trace that does not fit its own run."""


class Recording:
    """The recorded answers of one goal, by what was asked."""

    def __init__(self, goal: int, lines: Iterable[TraceLine]) -> None:
        self.opened: GoalOpened | None = None
        self.iterations: list[Iteration] = []
        self._attempts: dict[tuple[int, str], Attempt] = {}
        self._suggestions: dict[int, list[Suggestions]] = {}
        self._goals: dict[str, tuple[GoalView, ...]] = {}
        self.keys: dict[int, str] = {}
        for line in lines:
            if line.goal != goal:
                continue
            if isinstance(line, GoalOpened):
                self.opened = line
                self._remember(line.root)
            elif isinstance(line, Iteration):
                self._read(line)

    def _read(self, line: Iteration) -> None:
        self.iterations.append(line)
        for record in line.new:
            self._remember(record)
        if line.node is None:
            return
        if line.candidates is not None:
            answers = self._suggestions.setdefault(line.node, [])
            answers.append(Suggestions(line.candidates, line.complete))
        for attempt in line.attempts:
            self._attempts[line.node, attempt.tactic] = attempt

    def _remember(self, record: NodeRecord) -> None:
        self._goals[record.key] = record.goals
        self.keys[record.id] = record.key

    def suggestions(self, node: int, round_number: int) -> Suggestions | None:
        answers = self._suggestions.get(node, [])
        return answers[round_number] if round_number < len(answers) else None

    def outcome(self, node: int, tactic: str) -> Outcome | None:
        """What Lean answered; a refused edge had worked in Lean, the tree refuses it again."""
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
    """An environment that can be told about nodes it has not seen come about."""

    def expect(self, node: int, key: str) -> None: ...


class FedEnvironment:
    """Answers from a recording while it can, then from the live environment, if there is one."""

    def __init__(self, recording: Recording, live: LiveEnvironment | None) -> None:
        self._recording = recording
        self._live = live
        if live is not None:
            for node, key in recording.keys.items():
                live.expect(node, key)

    def root(self) -> Subgoal:
        opened = self._recording.opened
        if opened is not None:
            goals = opened.root.goals
            return Subgoal(opened.root.key, goals, tuple(range(len(goals))))
        return self._beyond("the goal itself").root()

    def apply(self, node: int, tactic: str) -> Outcome:
        known = self._recording.outcome(node, tactic)
        if known is not None:
            return known
        return self._beyond(f"`{tactic}` on node {node}").apply(node, tactic)

    def knowledge(self, node: int) -> Knowledge:
        return self._beyond(f"what Lean knows about node {node}").knowledge(node)

    def bind(self, parent: int, tactic: str, children: Sequence[int]) -> None:
        if self._live is not None:
            self._live.bind(parent, tactic, children)

    def _beyond(self, what: str) -> LiveEnvironment:
        if self._live is None:
            raise TraceError(f"the trace does not say what came of {what}")
        return self._live
