"""AND/OR worlds as data, and a driver that grows a graph in one by any policy. No Lean."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from treewright.search.andor.graph import Changes, Child, Graph, Node, Status
from treewright.search.andor.policies import Policy

Action = tuple[str, list[str], float | None]
"""Its name, the goals it leaves, its prior."""


@dataclass
class World:
    """By goal: how it looks, and the actions that are possible there, in the order of trying."""

    estimates: dict[str, float]
    actions: dict[str, list[Action]]

    @staticmethod
    def of(data: dict[str, Any]) -> World:
        actions = {
            goal: [(name, left, prior) for name, left, prior in listed]
            for goal, listed in data["actions"].items()
        }
        return World(data["estimates"], actions)


def drawn_world(seed: int, *, goals: int = 40, closing: float = 0.1, priors: bool = True) -> World:
    """Shared goals, circles, dead ends, goals that are left twice."""
    rng = random.Random(seed)
    names = [f"g{n}" for n in range(goals)]
    names[0] = "root"
    estimates = {name: round(rng.uniform(0.05, 0.95), 2) for name in names}
    actions: dict[str, list[Action]] = {}
    for name in names:
        count = rng.choice((0, 1, 2, 3, 4, 5))
        actions[name] = [
            (
                f"t{n}",
                [] if rng.random() < closing else rng.choices(names, k=rng.choice((1, 1, 2, 3))),
                round(rng.random(), 2) if priors else None,
            )
            for n in range(count)
        ]
    return World(estimates, actions)


@dataclass
class Growth:
    """A graph that a policy grows: one turn tries the next action of the chosen goal."""

    world: World
    policy: Policy
    seed: int = 0
    graph: Graph = field(init=False)
    turns: int = field(default=0, init=False)
    tried: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.graph = Graph("root", self.world.estimates["root"])

    @property
    def over(self) -> bool:
        return self.graph.root.status is not Status.OPEN

    def turn(self) -> tuple[str, ...]:
        """The goals from the root to the one that was chosen."""
        self.turns += 1
        path, goal = self.policy.choose(self.graph, (self.seed << 64) + self.turns)
        changes = Changes()
        self._try_next(goal, changes)
        self.policy.learn(self.graph, (path, goal), _worth(goal), changes)
        return (*(node.key for node, _ in path), goal.key)

    def choices(self, most: int) -> list[str]:
        """The goals chosen, until the root is settled."""
        chosen: list[str] = []
        while not self.over and len(chosen) < most:
            chosen.append(self.turn()[-1])
        return chosen

    def _try_next(self, goal: Node, changes: Changes) -> None:
        actions = self.world.actions.get(goal.key, [])
        place = self.tried.get(goal.key, 0)
        self.tried[goal.key] = place + 1
        if place < len(actions):
            name, left, prior = actions[place]
            children = [Child(key, self.world.estimates[key]) for key in left]
            self.graph.add_edge(goal, name, prior, children, changes)
        if place + 1 >= len(actions) and goal.status is Status.OPEN:
            self.graph.exhaust(goal, changes)


def _worth(goal: Node) -> float:
    if goal.status is not Status.OPEN:
        return goal.value
    return max((edge.promise for edge in goal.live), default=goal.estimate / 2)
