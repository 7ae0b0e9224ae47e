"""Monte Carlo tree search with progressive widening.

Selection is UCT (Kocsis & Szepesvári 2006) or PUCT (Silver et al. 2017). A node has at most
`widen_scale * (visits + 1) ** widen_power` children before the search descends into the known ones.

With `backup = "best"` a branch is worth the best value found in it: the aim is one good node, and
most changes of a good node make it worse. With `"mean"` it is worth the mean of its values, where
failures and pending choices count as the lowest value, as in games. Values are scaled to 0..1 by
the lowest and highest value seen.
"""

from __future__ import annotations

import math
from random import Random
from typing import ClassVar, Literal

from treewright.search.policies.policy import (
    Choice,
    NotNegative,
    Policy,
    Positive,
    Power,
    any_action,
)
from treewright.search.tree import Branch, Tree


class Mcts(Policy, frozen=True, tag="mcts"):
    """Monte Carlo tree search.

    Attributes:
        selection: `"uct"` explores by visit counts, `"puct"` also by the priors of the nodes.
        backup: `"best"` values a branch by its best node, `"mean"` by the mean of its nodes.
        exploration: The weight of exploration against value.
        widen_scale: The factor of the widening limit.
        widen_power: The exponent of the widening limit.
    """

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
        """Descend to the node that grows next; None if no node can grow."""
        branch = tree.root
        if not branch.growing:
            return None
        while True:
            grows = tree.can_grow(branch)
            visited = branch.visits + branch.reserved
            allowed = self.widen_scale * (visited + 1) ** self.widen_power
            if grows and len(branch.children) + branch.child_reserved < allowed:
                break
            if branch.growing == grows:
                break  # nothing below it can grow, so it takes a child before its share is due
            branch = self._best_child(tree, branch)
        return Choice(branch.number, any_action(tree, rng))

    def _best_child(self, tree: Tree, above: Branch) -> Branch:
        """Return the child with the highest score, the older of equals, of those that can grow."""
        low, span = tree.lowest, (tree.highest - tree.lowest) or 1.0
        shift = low - tree.origin
        visited = above.visits + above.reserved
        count_scale = self.exploration * math.sqrt(math.log(visited + 1))
        priors = above.prior_sum or 1.0  # all priors may be 0
        prior_scale = self.exploration * math.sqrt(visited) * len(above.children) / priors
        best_of, puct = self.backup == "best", self.selection == "puct"
        best, best_score = above, -math.inf
        for child in above.children:
            if not child.growing:
                continue
            tried = child.visits + child.reserved
            if best_of:
                score = (child.peak - low) / span
            else:
                score = (child.total - child.scored * shift) / span / tried
            if puct:
                score += prior_scale * child.prior / (1 + tried)
            else:
                score += count_scale / math.sqrt(tried)
            if score > best_score:
                best, best_score = child, score
        return best
