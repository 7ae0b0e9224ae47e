"""What the sections and pictures of a proof run's report share, read once from its files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from treewright.llm.usage_log import UsageLog
from treewright.proving import layout
from treewright.proving.records import (
    AgainOpened,
    AgainTurn,
    GoalOpened,
    Iteration,
    NegationTurn,
    TraceLine,
    VerdictReached,
)
from treewright.proving.settings import RunRecord, read_run
from treewright.proving.trace import read_trace

KEPT = ("blocked", "delayed")
"""Reasons of turns in which an agent was kept from working."""


@dataclass(slots=True)
class GoalFacts:
    """One goal: its lines, in order. Without a verdict the search is not over."""

    number: int
    opened: GoalOpened | None = None
    iterations: list[Iteration] = field(default_factory=list)
    negation: list[Iteration] = field(default_factory=list)
    again: list[Iteration] = field(default_factory=list)
    without: tuple[str, ...] = ()
    verdict: VerdictReached | None = None

    @property
    def name(self) -> str:
        return (self.opened.name if self.opened else "") or f"goal {self.number}"

    @property
    def status(self) -> str:
        return self.verdict.status if self.verdict else "open"

    @property
    def turns(self) -> list[Iteration]:
        """Of all searches of the goal: for a proof, for one of its negation, and once more."""
        return [*self.iterations, *self.negation, *self.again]

    @property
    def lean_seconds(self) -> float:
        return sum(a.ms for turn in self.turns for a in turn.attempts) / 1000

    @property
    def seconds(self) -> float:
        """Of all searches of the goal, over all processes that worked on it."""
        searches = (self.iterations, self.negation, self.again)
        return sum(turns[-1].elapsed for turns in searches if turns)

    @property
    def lean_share(self) -> float | None:
        return min(1.0, self.lean_seconds / self.seconds) if self.seconds else None

    def worked(self) -> Counter[str]:
        """Tactics that led somewhere, by how often."""
        return Counter(
            attempt.tactic
            for turn in self.iterations
            for attempt in turn.attempts
            if attempt.edge is not None
        )


@dataclass(frozen=True)
class RunFacts:
    """A run: what it was asked to do, its goals, and what it used of a model."""

    record: RunRecord
    goals: list[GoalFacts]
    spent: UsageLog

    @classmethod
    def read(cls, run_dir: Path) -> RunFacts:
        record, lines = read_run(run_dir / layout.RUN), read_trace(run_dir / layout.TRACE)
        return cls(record, by_goal(lines), UsageLog(run_dir / layout.USAGE))

    @cached_property
    def iterations(self) -> list[Iteration]:
        """Of all goals."""
        return [turn for goal in self.goals for turn in goal.iterations]

    @cached_property
    def outcomes(self) -> Counter[str]:
        return Counter(attempt.outcome for turn in self.iterations for attempt in turn.attempts)

    @cached_property
    def agents(self) -> dict[int, str]:
        """The algotype of each agent that had a turn; empty for a centralized run."""
        found = {
            turn.agent: turn.algotype or "–" for turn in self.iterations if turn.agent is not None
        }
        return dict(sorted(found.items()))


def by_goal(lines: list[TraceLine]) -> list[GoalFacts]:
    """The lines of a trace, goal by goal."""
    goals: dict[int, GoalFacts] = {}
    for line in lines:
        goal = goals.setdefault(line.goal, GoalFacts(line.goal))
        if isinstance(line, Iteration):
            goal.iterations.append(line)
        elif isinstance(line, GoalOpened):
            goal.opened = line
        elif isinstance(line, NegationTurn):
            goal.negation.append(line.turn)
        elif isinstance(line, AgainOpened):
            goal.without = line.without
        elif isinstance(line, AgainTurn):
            goal.again.append(line.turn)
        elif isinstance(line, VerdictReached):
            goal.verdict = line
    return [goals[number] for number in sorted(goals)]
