"""What a runner reports of one iteration: to be written down as an `Iteration`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from treewright.proving.expansion import Expansion
from treewright.proving.records import Counters, Intervention, Iteration, Reason
from treewright.search.andor.graph import Edge, Graph, Node, Status


@dataclass(slots=True)
class Turn:
    """One iteration. Without a leaf nothing was visited: its agent was kept from working."""

    path: Sequence[tuple[Node, Edge]]
    leaf: Node | None
    expansion: Expansion | None
    reason: Reason
    agent: int | None = None
    algotype: str | None = None
    interventions: tuple[Intervention, ...] = ()
    tick: int | None = None


@dataclass(slots=True)
class Stamp:
    """What a line says about its place and its time."""

    epoch: int
    at: str
    iteration: int
    goal: int
    elapsed: float = 0.0


def reason_of(leaf: Node, expansion: Expansion) -> Reason:
    """What an expansion came to."""
    if leaf.status is Status.SOLVED:
        return "solved"
    if leaf.status is Status.DEAD:
        return "dead"
    return "expanded" if expansion.grew else "no_expansion"


def record(turn: Turn, tree: Graph, attempts: int, stamp: Stamp) -> Iteration:
    expansion = turn.expansion or Expansion()
    leaf = turn.leaf
    path = tuple([node.id for node, _ in turn.path])
    return Iteration(
        epoch=stamp.epoch,
        at=stamp.at,
        iteration=stamp.iteration,
        goal=stamp.goal,
        agent=turn.agent,
        algotype=turn.algotype,
        path=path if leaf is None else (*path, leaf.id),
        node=None if leaf is None else leaf.id,
        reason=turn.reason,
        candidates=expansion.candidates,
        complete=expansion.complete,
        attempts=tuple(expansion.attempts),
        value=None if turn.expansion is None else round(expansion.value, 6),
        root_value=round(tree.root.value, 6),
        counters=Counters(len(tree.nodes), len(tree.edges), tree.solved, tree.dead, attempts),
        new=tuple(expansion.new),
        solved=tuple([node.id for node in expansion.changes.solved]),
        dead=tuple([node.id for node in expansion.changes.dead]),
        interventions=turn.interventions,
        tick=turn.tick,
        elapsed=stamp.elapsed,
    )
