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
from array import array
from operator import sub
from random import Random
from typing import ClassVar, Literal

from treewright.search.branch import RANKS, Leaders
from treewright.search.policies.base import (
    Choice,
    NotNegative,
    Policy,
    Positive,
    Power,
    any_action,
)
from treewright.search.tree import Branch, Tree

_MANY = 16
"""Of so many children only the leaders are looked at, as long as one of them is ahead."""
_MOST_LEADERS = 6


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

    @property
    def sums_values(self) -> bool:
        return self.backup == "mean"

    def choose(self, tree: Tree, rng: Random) -> Choice | None:
        branch = tree.root
        if not branch.growing:
            return None
        is_default = self.backup == "best" and self.selection == "uct"
        low, span = tree.lowest, (tree.highest - tree.lowest) or 1.0
        while True:
            visited = branch.visits + branch.reserved
            grows = tree.can_grow(branch)
            if grows:
                allowed = self.widen_scale * (visited + 1) ** self.widen_power
                if len(branch.children) + branch.child_reserved < allowed:
                    break
            if branch.growing == grows:
                break  # none but itself: it takes a child before its share is due
            if is_default:
                # Nearly all the time of a search in memory is spent here, so this has loops of
                # its own. What cannot grow has a peak of -inf.
                scale = self.exploration * math.sqrt(math.log(visited + 1))
                ranks = branch.ranks
                if branch.leaders is not None:
                    rows, best_score, up_to, low_then, span_then = branch.leaders
                    if scale <= up_to and low == low_then and span == span_then:
                        best = -1
                        for row in rows:
                            score = (ranks[row] - low) / span + scale / ranks[row + 1]
                            if score > best_score:
                                best, best_score = row, score
                        if best >= 0:
                            branch = branch.children[best // RANKS]
                            continue
                numbers = iter(ranks)
                scores = [
                    (peak - low) / span + scale / root_of_tried
                    for peak, root_of_tried in zip(numbers, numbers, strict=True)
                ]
                if len(scores) >= _MANY:
                    self._keep_leaders(branch, scores, scale, low, span)
                branch = branch.children[scores.index(max(scores))]
            else:
                branch = self._select(tree, branch)
        return Choice(branch.number, any_action(tree, rng))

    def _keep_leaders(
        self, above: Branch, scores: list[float], scale: float, low: float, span: float
    ) -> None:
        """After a look at all children, for the choices until there are an eighth more visits.

        Where values have changed since the last look they may change again before leaders would be
        of use: there are none until the second look. Nor are there any where the first are alike.
        """
        kept = above.leaders
        if kept is None or scale > kept.scale or low != kept.low or span != kept.span:
            above.leaders = Leaders((), math.inf, math.inf, low, span)
        elif kept.rows or kept.bound == math.inf:
            visited = above.visits + above.reserved
            later = self.exploration * math.sqrt(math.log(visited + visited // 8 + 1))
            above.leaders = _leaders(above.ranks, scores, later, low, span)

    def _select(self, tree: Tree, above: Branch) -> Branch:
        """The best child of those in which something can grow. There is one."""
        low, span = tree.lowest, (tree.highest - tree.lowest) or 1.0
        visited = above.visits + above.reserved
        count_scale = self.exploration * math.sqrt(math.log(visited + 1))
        best, best_score = above, -math.inf
        shift = low - tree.origin
        priors = above.prior_sum or 1.0  # all of them may be 0
        prior_scale = self.exploration * math.sqrt(visited) * len(above.children) / priors
        best_of, puct = self.backup == "best", self.selection == "puct"
        for child in above.children:
            if not child.growing:
                continue
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


def _leaders(
    ranks: array[float], scores: list[float], scale: float, low: float, span: float
) -> Leaders:
    """Those ahead of the widest gap between the first few: it takes the longest to close."""
    first = sorted(scores, reverse=True)[: _MOST_LEADERS + 1]
    gaps = list(map(sub, first, first[1:]))
    behind = first[gaps.index(max(gaps)) + 1]
    rows = tuple(place * RANKS for place, score in enumerate(scores) if score > behind)
    numbers = iter(ranks)
    later = [
        (peak - low) / span + scale / root_of_tried
        for peak, root_of_tried in zip(numbers, numbers, strict=True)
    ]
    for row in rows:
        later[row // RANKS] = -math.inf
    return Leaders(rows, max(later), scale, low, span)
