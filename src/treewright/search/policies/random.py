"""A random node that can grow: the baseline that other policies must beat."""

from __future__ import annotations

from random import Random as Stream
from typing import ClassVar

from treewright.search.policies.policy import Choice, Policy, any_action
from treewright.search.tree import Tree


class Random(Policy, frozen=True, tag="random"):
    """Chooses every node that can grow with the same probability."""

    name: ClassVar[str] = "random"
    summary: ClassVar[str] = "a random node, as a baseline for comparisons"

    def choose(self, tree: Tree, rng: Stream) -> Choice | None:
        growing = tree.growing
        if not growing:
            return None
        branch = growing[int(rng.random() * len(growing))]
        return Choice(branch.number, any_action(tree, rng))
