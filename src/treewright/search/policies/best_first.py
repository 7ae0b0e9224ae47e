"""Best-first search: always the best node that can still grow."""

from __future__ import annotations

from random import Random
from typing import ClassVar

from treewright.search.policies.policy import Choice, Policy, any_action
from treewright.search.tree import Tree


class BestFirst(Policy, frozen=True, tag="best-first"):
    """Best-first search. It is greedy; the tree's `branching` limits the children of a node."""

    name: ClassVar[str] = "best-first"
    summary: ClassVar[str] = "always the best node that can still grow"
    branching: ClassVar[int | None] = 8

    def choose(self, tree: Tree, rng: Random) -> Choice | None:
        branch = tree.best_growing()
        return Choice(branch.number, any_action(tree, rng)) if branch is not None else None
