"""A proof run as columns, pictures and steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from treewright.kernel.errors import UsageError
from treewright.proving import run
from treewright.proving.records import GoalView
from treewright.proving.report import pictures
from treewright.proving.report.facts import GoalFacts, RunFacts
from treewright.proving.run import RunResult
from treewright.runs.columns import Columns, Picture, page


@dataclass(frozen=True, slots=True)
class TacticTried:
    """A tactic that was tried on a goal. `leaves` are the goals that it left, as Lean shows them.

    `outcome`: `goals`, `closed`, `error`, `timeout`, `exhausted`, `lost`, `rejected`, `duplicate`.
    """

    tactic: str
    outcome: str
    leaves: tuple[str, ...]
    detail: str
    seconds: float

    @property
    def worked(self) -> bool:
        """Return whether Lean accepted the tactic and the search took its result."""
        return self.outcome in ("goals", "closed")


@dataclass(frozen=True, slots=True)
class Simulation:
    """One simulation.

    `goal` is the name of the goal to prove. `at` is the subgoal of this simulation, or empty.
    `solved` says whether the whole goal is solved after it.
    """

    number: int
    goal: str
    node: int | None
    at: str
    reason: str
    tried: tuple[TacticTried, ...]
    root_value: float
    goals: int
    solved: bool
    seconds: float
    agent: int | None = None

    def __str__(self) -> str:
        lines = [f"simulation {self.number} of {self.goal}: {self.reason}"]
        lines += [f"  {line}" for line in self.at.splitlines()]
        for one in self.tried:
            lines.append(f"  {one.outcome}: {' '.join(one.tactic.split())}")
        return "\n".join(lines)


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
    """A proof run at the time of reading."""

    path: Path
    facts: RunFacts
    result: RunResult | None
    kind: Literal["proof"] = "proof"

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the proof run in a directory."""
        return cls(path, RunFacts.read(path), run.read_result(path))

    @property
    def run_id(self) -> str:
        """Return the id of the run."""
        return self.facts.record.run_id

    @property
    def is_finished(self) -> bool:
        """Return whether every goal has a verdict."""
        return self.result is not None and self.result.complete

    @property
    def proved(self) -> int:
        """Return the number of goals with an accepted proof so far."""
        return sum(goal.status == "proved" for goal in self.facts.goals)

    @cached_property
    def goals(self) -> Columns:
        """One row for each goal that was opened."""
        rows: list[tuple[Any, ...]] = []
        for goal in self.facts.goals:
            verdict, opened = goal.verdict, goal.opened
            counters = goal.iterations[-1].counters if goal.iterations else None
            rows.append(
                (
                    goal.number, goal.name, opened.statement if opened else "", goal.status,
                    verdict.stop if verdict else None, verdict.detail if verdict else "",
                    verdict.proof if verdict else "", list(verdict.axioms) if verdict else [],
                    len(goal.iterations), counters.nodes if counters else 0,
                    counters.attempts if counters else 0, goal.seconds, goal.lean_seconds,
                )
            )  # fmt: skip
        return Columns.of(_GOAL, rows)

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
        """Yield the simulations of one goal (by number or name), or of all goals."""
        for one in self.facts.goals if goal is None else [self._find(goal)]:
            shown: dict[int, str] = {}
            is_solved = False
            new = [one.opened.root] if one.opened is not None else []
            for turn in one.iterations:
                for node in (*new, *turn.new):
                    shown[node.id] = "\n\n".join(map(_show_goal, node.goals))
                new = []
                is_solved = is_solved or 0 in turn.solved
                tried = [
                    TacticTried(
                        attempt.script or attempt.tactic,
                        attempt.outcome,
                        tuple(shown.get(child, "") for child in attempt.children),
                        attempt.detail,
                        attempt.ms / 1000,
                    )
                    for attempt in turn.attempts
                ]
                yield Simulation(
                    turn.iteration,
                    one.name,
                    turn.node,
                    shown.get(turn.node, "") if turn.node is not None else "",
                    turn.reason,
                    tuple(tried),
                    turn.root_value,
                    turn.counters.nodes,
                    is_solved,
                    turn.elapsed,
                    turn.agent,
                )

    def growth(self, goal: int | str = 0) -> Picture:
        """Return a chart of the growth of a goal's graph."""
        return Picture(pictures.growth(self._find(goal)))

    def root_value(self, goal: int | str = 0) -> Picture:
        """Return a chart of a goal's root value by simulation."""
        return Picture(pictures.root_value(self._find(goal)))

    def outcomes(self) -> Picture:
        """Return a chart of the outcomes of all tactics."""
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
        names = ", ".join(goal.name for goal in self.facts.goals) or "no goal has been opened yet"
        raise UsageError(f"run {self.run_id} has no goal {wanted!r}; there are: {names}")


def _show_goal(goal: GoalView) -> str:
    """Return a goal as Lean displays it."""
    lines = [f"case {goal.case}"] if goal.case else []
    for one in goal.hypotheses:
        value = f" := {one.value}" if one.value is not None else ""
        lines.append(f"{one.name} : {one.type}{value}")
    return "\n".join([*lines, f"⊢ {goal.target}"])
