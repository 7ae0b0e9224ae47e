"""Traces made by the real engine in the synthetic world, and by hand where a test needs to."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.proving.synthetic import world_expander
from treewright.proving.centralized import CentralizedEngine
from treewright.proving.records import Counters, GoalOpened, GoalResult, Intervention, Iteration
from treewright.proving.search import Stamp, iteration_line
from treewright.search.andor.policies.mcts import Mcts

AT = "2026-01-01T00:00:00.000Z"
ALGOTYPES = ("ucb", "depth_first")
SOLVED = 1
"""A seed with a goal that is solved after some dozen steps."""

Line = GoalOpened | Iteration | GoalResult


def search(
    seed: int,
    *,
    goal: int = 0,
    name: str = "t0",
    statement: str = "",
    limit: int = 60,
    first: int = 1,
    agents: int = 0,
    blocked: float = 0.0,
) -> list[Line]:
    """One goal's lines. With agents, turns are dealt out to them and some are blocked, by seed."""
    expander = world_expander(seed, closing=0.08)
    engine = CentralizedEngine(expander, Mcts())
    draw = Random(f"{seed} {agents} {blocked}")
    lines: list[Line] = [
        GoalOpened(1, AT, goal, "prove", name, statement or name, limit, expander.root)
    ]
    count = 0
    while not engine.finished and count < limit:
        stamp = Stamp(1, AT, first + count, goal, elapsed=round(0.01 * (count + 1), 6))
        agent = draw.randrange(agents) if agents else None
        if agent is not None and draw.random() < blocked:
            until = count + 5
            block = Intervention("block", agent=agent, until=until, source="fraction")
            lines.append(idle(lines, stamp, agent, block))
        else:
            turn = engine.step()
            turn.agent = agent
            turn.algotype = None if agent is None else ALGOTYPES[agent % 2]
            lines.append(iteration_line(turn, expander.tree, expander.attempts, stamp))
        count += 1
    solved = engine.tree.root.status == 1
    lines.append(
        GoalResult(
            goal,
            name,
            "proved" if solved else "unproved",
            "solved" if solved else "simulations",
            proof="exact <trivial> | simp" if solved else "",
            iterations=count,
            elapsed=round(0.01 * count, 6),
            epoch=1,
            at=AT,
        )
    )
    return lines


def idle(lines: Sequence[Line], stamp: Stamp, agent: int, intervention: Intervention) -> Iteration:
    """A turn in which an agent was kept from working."""
    last = lines[-1]
    counters = last.counters if isinstance(last, Iteration) else Counters(1, 0, 0, 0, 0)
    return Iteration(
        stamp.epoch, stamp.at, stamp.iteration, stamp.goal, "prove", agent, ALGOTYPES[agent % 2],
        (), None, "blocked", (), False, (), None,
        last.root_value if isinstance(last, Iteration) else 0.3,
        counters, (), (), (), (intervention,), elapsed=stamp.elapsed,
    )  # fmt: skip


def iterations(lines: Sequence[Line]) -> list[Iteration]:
    return [line for line in lines if isinstance(line, Iteration)]
