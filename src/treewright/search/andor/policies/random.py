"""Down at random, another action at a goal as likely as each edge: the null to compare with."""

from __future__ import annotations

from random import Random as Stream
from typing import ClassVar

import msgspec

from treewright.search.andor.graph import Graph, Status
from treewright.search.andor.policies.base import Policy, Share, Way
from treewright.search.andor.statistics import Backup, Step


class Random(Policy, msgspec.Struct, frozen=True, tag="random"):
    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "down at random, the null to compare with"

    discount: Share = 0.97
    backup: Backup = "product"

    def choose(self, graph: Graph, seed: int) -> Way:
        rng = Stream(seed)  # noqa: S311 - for choosing, not for secrets
        node = graph.root
        path: list[Step] = []
        while node.live:
            place = int(rng.random() * (len(node.live) + (not node.exhausted)))
            if place == len(node.live):
                break
            edge = node.live[place]
            path.append((node, edge))
            unsolved = [child for child in edge.children if child.status is Status.OPEN]
            node = unsolved[int(rng.random() * len(unsolved))]
        return path, node
