"""Monte Carlo tree search: go down by value and exploration, grow where a node is worth widening.

UCT (Kocsis & Szepesvári 2006) or PUCT (Silver et al. 2017), with progressive widening: a node has
at most `widen_scale * (visits + 1) ** widen_power` children before the known ones are followed.

A branch is worth the best value found in it (`backup = "best"`: what counts in the end is one
good node, and most changes of a good one are worse), or the mean of all of them, failures and
pending choices counted as the lowest (`"mean"`, as in games). Values are scaled to 0..1 by the
lowest and highest seen.
"""

from __future__ import annotations

import math
from random import Random
from typing import ClassVar, Literal

from treewright.search.policies.base import (
    Choice,
    NotNegative,
    Policy,
    Positive,
    Power,
    any_action,
)
from treewright.search.tree import Branch, Tree


class Mcts(Policy, frozen=True, tag="mcts"):
    name: ClassVar[str] = "mcts"
    summary: ClassVar[str] = "Monte Carlo tree search (UCT or PUCT) with progressive widening"
    sums_subtrees: ClassVar[bool] = True
    branching: ClassVar[int | None] = 32

    selection: Literal["uct", "puct"] = "uct"
    backup: Literal["best", "mean"] = "best"
    exploration: NotNegative = 0.1
    widen_scale: Positive = 1.0
    widen_power: Power = 0.5

    def choose(self, tree: Tree, rng: Random) -> Choice | None:
        branch = tree.root
        if not branch.growing:
            return None
        while True:
            grows = tree.can_grow(branch)
            if grows and self._may_widen(branch):
                break
            below = [child for child in branch.children if child.growing]
            if not below:
                break  # `branch.growing` is its own: it takes a child before its share is due
            branch = below[0] if len(below) == 1 else self._select(tree, branch, below)
        return Choice(branch.number, any_action(tree, rng))

    def _may_widen(self, branch: Branch) -> bool:
        allowed = self.widen_scale * (branch.visits + branch.reserved + 1) ** self.widen_power
        return len(branch.children) + branch.child_reserved < allowed

    def _select(self, tree: Tree, above: Branch, below: list[Branch]) -> Branch:
        low, span = tree.lowest, (tree.highest - tree.lowest) or 1.0
        shift = low - tree.origin
        visited = above.visits + above.reserved
        priors = above.prior_sum or 1.0  # all of them may be 0
        prior_scale = self.exploration * math.sqrt(visited) * len(above.children) / priors
        count_scale = self.exploration * math.sqrt(math.log(visited + 1))
        best_of, puct = self.backup == "best", self.selection == "puct"
        best, best_score = below[0], -math.inf
        for child in below:
            tried = child.visits + child.reserved
            if best_of:
                score = (child.peak - low) / span
            else:
                score = (child.total - (child.visits - child.failures) * shift) / span / tried
            if puct:
                score += prior_scale * child.prior / (1 + tried)
            else:
                score += count_scale / math.sqrt(tried)
            if score > best_score:
                best, best_score = child, score
        return best
