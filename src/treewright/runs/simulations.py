"""A proof search step by step: which goal, which tactics, what each of them left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from treewright.proving.records import Attempt, GoalView, NodeRecord
from treewright.proving.report.facts import GoalFacts


@dataclass(frozen=True, slots=True)
class TacticTried:
    """A tactic on a goal. `leaves` are the goals it left, as Lean shows them; none if it closed it.

    `outcome`: `goals`, `closed`, `error`, `timeout`, `exhausted`, `lost`, `rejected`, `duplicate`.
    """

    tactic: str
    outcome: str
    leaves: tuple[str, ...]
    detail: str
    seconds: float

    @property
    def worked(self) -> bool:
        return self.outcome in ("goals", "closed")


@dataclass(frozen=True, slots=True)
class Simulation:
    """One turn of a search. `goal` is the name of what is to be proved, `at` the goal that was
    worked on (empty if the turn came to none), `solved` whether the whole goal is solved since."""

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


def simulations(goal: GoalFacts) -> Iterator[Simulation]:
    """The turns of one goal's search, in order."""
    shown: dict[int, str] = {}
    if goal.opened is not None:
        _learn(shown, [goal.opened.root])
    is_solved = False
    for turn in goal.iterations:
        _learn(shown, turn.new)
        is_solved = is_solved or 0 in turn.solved
        yield Simulation(
            turn.iteration,
            goal.name,
            turn.node,
            shown.get(turn.node, "") if turn.node is not None else "",
            turn.reason,
            tuple(_tried(attempt, shown) for attempt in turn.attempts),
            turn.root_value,
            turn.counters.nodes,
            is_solved,
            turn.elapsed,
            turn.agent,
        )


def _learn(shown: dict[int, str], nodes: Iterable[NodeRecord]) -> None:
    shown.update({node.id: "\n\n".join(map(_as_lean_shows, node.goals)) for node in nodes})


def _tried(attempt: Attempt, shown: dict[int, str]) -> TacticTried:
    leaves = tuple(shown.get(child, "") for child in attempt.children)
    return TacticTried(
        attempt.script or attempt.tactic, attempt.outcome, leaves, attempt.detail,
        attempt.ms / 1000,
    )  # fmt: skip


def _as_lean_shows(goal: GoalView) -> str:
    lines = [f"case {goal.case}"] if goal.case else []
    for one in goal.hypotheses:
        value = f" := {one.value}" if one.value is not None else ""
        lines.append(f"{one.name} : {one.type}{value}")
    return "\n".join([*lines, f"⊢ {goal.target}"])
