"""A proof run as columns, pictures and steps: goals, simulations, every tactic that was tried."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from treewright.kernel.errors import UsageError
from treewright.proving import run
from treewright.proving.report import pictures
from treewright.proving.report.facts import GoalFacts, RunFacts
from treewright.proving.run import RunResult
from treewright.runs.columns import Columns, Picture, page
from treewright.runs.simulations import Simulation, simulations

_GOAL = (
    "goal", "name", "statement", "status", "stop", "detail", "proof", "axioms", "simulations",
    "nodes", "attempts", "seconds", "lean_seconds",
)  # fmt: skip
_SIMULATION = (
    "simulation", "goal", "name", "node", "reason", "tried", "worked", "root_value", "nodes",
    "edges", "solved", "dead", "seconds", "agent", "at",
)  # fmt: skip
_ATTEMPT = (
    "simulation", "goal", "name", "node", "tactic", "outcome", "goals_left", "seconds", "detail",
)  # fmt: skip


@dataclass(frozen=True)
class ProofRun:
    """A search for proofs, as it was when it was read."""

    path: Path
    facts: RunFacts
    result: RunResult | None
    kind: Literal["proof"] = "proof"

    @classmethod
    def read(cls, path: Path) -> Self:
        return cls(path, RunFacts.read(path), run.read_result(path))

    @property
    def run_id(self) -> str:
        return self.facts.record.run_id

    @property
    def is_finished(self) -> bool:
        """Whether every goal has a verdict."""
        return self.result is not None and self.result.complete

    @property
    def proved(self) -> int:
        """How many goals the replay check accepted a proof of, so far."""
        return sum(goal.status == "proved" for goal in self.facts.goals)

    @cached_property
    def goals(self) -> Columns:
        """One row for each goal that was opened."""
        return Columns.of(_GOAL, [_goal(goal) for goal in self.facts.goals])

    @cached_property
    def simulations(self) -> Columns:
        """One row for each simulation, of all goals."""
        rows = [
            (
                turn.iteration, goal.number, goal.name, turn.node, turn.reason, len(turn.attempts),
                sum(a.edge is not None for a in turn.attempts), turn.root_value,
                turn.counters.nodes, turn.counters.edges, turn.counters.solved, turn.counters.dead,
                turn.elapsed, turn.agent, turn.at,
            )
            for goal in self.facts.goals
            for turn in goal.iterations
        ]  # fmt: skip
        return Columns.of(_SIMULATION, rows)

    @cached_property
    def attempts(self) -> Columns:
        """One row for each tactic that was tried."""
        rows = [
            (
                turn.iteration, goal.number, goal.name, turn.node, a.tactic, a.outcome,
                len(a.children), a.ms / 1000, a.detail,
            )
            for goal in self.facts.goals
            for turn in goal.iterations
            for a in turn.attempts
        ]  # fmt: skip
        return Columns.of(_ATTEMPT, rows)

    def steps(self, goal: int | str | None = None) -> Iterator[Simulation]:
        """The search step by step: of one goal, by its number or name, or of all."""
        for one in self.facts.goals if goal is None else [self._find(goal)]:
            yield from simulations(one)

    def growth(self, goal: int | str = 0) -> Picture:
        """How the graph of a goal grew."""
        return Picture(pictures.growth(self._find(goal)))

    def root_value(self, goal: int | str = 0) -> Picture:
        """How provable a goal looked, simulation by simulation."""
        return Picture(pictures.root_value(self._find(goal)))

    def outcomes(self) -> Picture:
        """What came of the tactics that were tried."""
        return Picture(pictures.outcomes(self.facts))

    def _repr_html_(self) -> str:
        shown = [self.outcomes()] if self.facts.outcomes else []
        return page(f"proof run {self.run_id}", self._shown(), *shown) + self.goals._repr_html_()

    def __repr__(self) -> str:
        return f"ProofRun({self.run_id!r}, {self._shown()})"

    def _shown(self) -> dict[str, Any]:
        of = f" of {self.result.total}" if self.result is not None else ""
        return {
            "searcher": self.facts.record.settings.searcher,
            "goals opened": len(self.facts.goals),
            "proved": f"{self.proved}{of}",
            "finished": "yes" if self.is_finished else "not yet",
        }

    def _find(self, wanted: int | str) -> GoalFacts:
        for goal in self.facts.goals:
            if wanted in (goal.number, goal.name):
                return goal
        names = ", ".join(goal.name for goal in self.facts.goals) or "none was opened yet"
        raise UsageError(f"run {self.run_id} has no goal {wanted!r}; there are: {names}")


def _goal(goal: GoalFacts) -> tuple[Any, ...]:
    verdict, opened = goal.verdict, goal.opened
    counters = goal.iterations[-1].counters if goal.iterations else None
    return (
        goal.number, goal.name, opened.statement if opened else "", goal.status,
        verdict.stop if verdict else None, verdict.detail if verdict else "",
        verdict.proof if verdict else "", list(verdict.axioms) if verdict else [],
        len(goal.iterations), counters.nodes if counters else 0,
        counters.attempts if counters else 0, goal.seconds, goal.lean_seconds,
    )  # fmt: skip
