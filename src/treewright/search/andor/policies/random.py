"""A random descent: another action at a goal is as likely as each edge. A baseline."""

from __future__ import annotations

from random import Random as Stream
from typing import ClassVar

import msgspec

from treewright.search.andor.graph import Graph, Status
from treewright.search.andor.policies.goal_policy import Descent, Policy, Share
from treewright.search.andor.visits import Backup, Step


class Random(Policy, msgspec.Struct, frozen=True, tag="random"):
    """Chooses goals at random."""

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "a random goal, as a baseline for comparisons"

    discount: Share = 0.97
    backup: Backup = "product"

    def choose(self, graph: Graph, seed: int) -> Descent:
        rng = Stream(seed)  # noqa: S311 - for choosing, not for secrets
        node = graph.root
        path: list[Step] = []
        while node.live:
            index = int(rng.random() * (len(node.live) + (not node.exhausted)))
            if index == len(node.live):
                break
            edge = node.live[index]
            path.append((node, edge))
            unsolved = [child for child in edge.children if child.status is Status.OPEN]
            node = unsolved[int(rng.random() * len(unsolved))]
        return path, node
