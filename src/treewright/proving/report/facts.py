"""The facts of a proof run that the sections and pictures of its report share, read once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from treewright.llm.usage_log import UsageLog
from treewright.proving import layout
from treewright.proving.records import GoalOpened, GoalResult, Iteration, TraceLine
from treewright.proving.settings import RunRecord, read_run
from treewright.proving.trace import read_trace

IDLE_REASONS = ("blocked", "delayed")
"""Reasons of iterations in which an intervention kept the agent from working."""


@dataclass(slots=True)
class GoalFacts:
    """The lines of one goal, by phase. Without a result the search is not over."""

    number: int
    opened: GoalOpened | None = None
    iterations: list[Iteration] = field(default_factory=list)
    """Those of the search for a proof."""
    negation: list[Iteration] = field(default_factory=list)
    retry: list[Iteration] = field(default_factory=list)
    without: tuple[str, ...] = ()
    """The open lemmas that the retry must not mention."""
    verdict: GoalResult | None = None

    @property
    def name(self) -> str:
        """The name of the goal, or its number before its search was opened."""
        return (self.opened.name if self.opened else "") or f"goal {self.number}"

    @property
    def status(self) -> str:
        """The status of the result; `open` without one."""
        return self.verdict.status if self.verdict else "open"

    @property
    def all_iterations(self) -> list[Iteration]:
        """The iterations of all phases."""
        return [*self.iterations, *self.negation, *self.retry]

    @property
    def lean_seconds(self) -> float:
        """The seconds in which Lean ran tactics, in all phases."""
        return sum(a.ms for line in self.all_iterations for a in line.attempts) / 1000

    @property
    def seconds(self) -> float:
        """The seconds of all phases, over all processes that worked on them."""
        phases = (self.iterations, self.negation, self.retry)
        return sum(lines[-1].elapsed for lines in phases if lines)

    @property
    def lean_share(self) -> float | None:
        """The share of the seconds that Lean needed; None without any."""
        return min(1.0, self.lean_seconds / self.seconds) if self.seconds else None

    def tactics_that_worked(self) -> Counter[str]:
        """Return how often each tactic of the search for a proof gave an edge."""
        return Counter(
            attempt.tactic
            for line in self.iterations
            for attempt in line.attempts
            if attempt.edge is not None
        )


@dataclass(frozen=True)
class RunFacts:
    """A run: its record, its goals, and its usage of a model."""

    record: RunRecord
    goals: list[GoalFacts]
    spent: UsageLog

    @classmethod
    def read(cls, run_dir: Path) -> RunFacts:
        """Read the files of a run."""
        record, lines = read_run(run_dir / layout.RUN), read_trace(run_dir / layout.TRACE)
        return cls(record, by_goal(lines), UsageLog(run_dir / layout.USAGE))

    @cached_property
    def iterations(self) -> list[Iteration]:
        """The searches for a proof of all goals."""
        return [line for goal in self.goals for line in goal.iterations]

    @cached_property
    def outcomes(self) -> Counter[str]:
        """How often each outcome of a tactic occurred, in the searches for a proof."""
        return Counter(attempt.outcome for line in self.iterations for attempt in line.attempts)

    @cached_property
    def agents(self) -> dict[int, str]:
        """The algotype of each agent that had an iteration; empty for a centralized run."""
        found = {
            line.agent: line.algotype or "–" for line in self.iterations if line.agent is not None
        }
        return dict(sorted(found.items()))


def by_goal(lines: list[TraceLine]) -> list[GoalFacts]:
    """Return the lines of a trace, goal by goal."""
    goals: dict[int, GoalFacts] = {}
    for line in lines:
        goal = goals.setdefault(line.goal, GoalFacts(line.goal))
        match line:
            case GoalResult():
                goal.verdict = line
            case GoalOpened(phase="prove"):
                goal.opened = line
            case GoalOpened(phase="retry"):
                goal.without = line.without
            case Iteration(phase="prove"):
                goal.iterations.append(line)
            case Iteration(phase="negate"):
                goal.negation.append(line)
            case Iteration(phase="retry"):
                goal.retry.append(line)
            case _:
                pass
    return [goals[number] for number in sorted(goals)]
