"""Adaptive branching MCTS: widen or deepen by Thompson sampling.

After Inoue et al. 2025 (arXiv 2503.04412), the variant that aggregates nodes with Gaussian
posteriors: at a node, "grow a new child" (GEN) and "follow the known children" (CONT) each have a
normal-inverse-gamma posterior, and so has every child below CONT. One draw each, the highest wins.
GEN has seen the scores of the node's own children, CONT those of everything deeper, a child those
of its subtree. Values are standardised by the run's mean and spread, so the prior has no scale;
a failure counts as the lowest value seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import ClassVar

from treewright.search.policies.base import Choice, Policy, Positive
from treewright.search.tree import Branch, Tree

_STEEPEST = -18.0
"""The smallest uniform number, 2**-53, to this power is still a float."""
_SURELY_BELOW = 0.25 + 1e-9
"""From this part of a turn to its mirror image a cosine is negative, whatever the rounding."""


class AbMcts(Policy, frozen=True, tag="ab-mcts"):
    """The prior: `prior_weight` observations of the run's mean, with `prior_spread` deviation."""

    name: ClassVar[str] = "ab-mcts"
    summary: ClassVar[str] = "widen or deepen by Thompson sampling (AB-MCTS-A)"
    sums_subtrees: ClassVar[bool] = True
    branching: ClassVar[int | None] = 32

    prior_weight: Positive = 1.0
    prior_freedom: Positive = 1.0
    prior_spread: Positive = 1.0

    def choose(self, tree: Tree, rng: Random) -> Choice | None:
        branch = tree.root
        if not branch.growing:
            return None
        posterior = _Posterior(self, tree, rng)
        while True:
            grows = tree.can_grow(branch)
            if branch.growing == grows:
                break  # nothing can grow below it
            if grows and self._widens(branch, posterior):
                break
            branch = posterior.highest(branch)
        return Choice(branch.number, self._action(tree, branch, posterior))

    @staticmethod
    def _widens(branch: Branch, posterior: _Posterior) -> bool:
        own = len(branch.children)
        generate = posterior.draw(
            own, branch.child_failures, branch.child_total, branch.child_squares
        )
        self_scored = branch.node is not None and branch.node.score is not None
        deeper_total, deeper_squares = branch.total, branch.squares
        deeper = branch.scored - own
        if self_scored:
            deeper -= 1
            distance = branch.value - posterior.origin
            deeper_total -= distance
            deeper_squares -= distance * distance
        follow = posterior.draw(
            deeper,
            branch.failures - branch.child_failures,
            deeper_total - branch.child_total,
            deeper_squares - branch.child_squares,
        )
        return generate >= follow

    @staticmethod
    def _action(tree: Tree, branch: Branch, posterior: _Posterior) -> str | None:
        """Where there are several ways to grow: each by the children it made here."""
        if len(tree.actions) < 2:
            return tree.actions[0] if tree.actions else None
        best, best_draw = tree.actions[0], -math.inf
        for action in tree.actions:
            values = [
                child.value - posterior.origin
                for child in branch.children
                if child.action == action
            ]
            squares = sum(value * value for value in values)
            draw = posterior.draw(len(values), 0, sum(values), squares)
            if draw > best_draw:
                best, best_draw = action, draw
        return best


class _Posterior:
    """Draws for one choice: the run's mean and deviation, in the tree's own coordinates, and
    the prior on that scale."""

    __slots__ = ("draw", "highest", "origin")

    def __init__(self, policy: AbMcts, tree: Tree, rng: Random) -> None:
        root = tree.root
        scored = root.scored
        mean = root.total / scored if scored else 0.0
        variance = max(0.0, root.squares / scored - mean * mean) if scored else 0.0
        inverse = 1.0 / math.sqrt(variance) if variance > 0.0 else 0.0
        lowest = (tree.lowest - tree.origin - mean) * inverse if scored else 0.0
        self.origin = tree.origin
        self.draw, self.highest = _drawing(policy, mean, inverse, lowest, rng)


def _drawing(
    policy: AbMcts, mean: float, inverse: float, lowest: float, rng: Random
) -> tuple[Callable[[int, int, float, float], float], Callable[[Branch], Branch]]:
    """Two functions, with all that is the same for one choice at hand: they are nearly all the time
    of a search in memory."""
    prior_weight, prior_freedom = policy.prior_weight, policy.prior_freedom
    prior_squares = prior_freedom * policy.prior_spread**2
    twice_mean = 2.0 * mean
    random, sqrt, cos, tau = rng.random, math.sqrt, math.cos, math.tau

    def draw(scored: float, failures: float, total: float, squares: float) -> float:
        """A mean drawn from the posterior, given so many observations with these sums."""
        count = scored + failures
        squares = (squares - twice_mean * total + scored * mean * mean) * inverse * inverse
        total = (total - scored * mean) * inverse
        if failures:
            squares += failures * lowest * lowest
            total += failures * lowest
        weight = prior_weight + count
        freedom = prior_freedom + count
        # The prior's squares, those within the observations, and those between it and them.
        spread = prior_squares + squares - total * total / weight
        # The marginal is Student's t; drawn exactly from two uniforms (Bailey 1994).
        power = -2.0 / freedom
        if power < _STEEPEST:
            power = _STEEPEST
        t = sqrt(freedom * ((1.0 - random()) ** power - 1.0)) * cos(tau * random())
        if spread < 0.0:
            spread = 0.0
        return total / weight + t * sqrt(spread / (freedom * weight))

    def highest(above: Branch) -> Branch:
        """The child whose draw is the highest, of those in which something can grow.

        The same as `draw` for each of them, written out: a call costs as much as a draw. Where
        the cosine is surely negative the draw is below the posterior's mean, and if that is no
        higher than the best so far the rest of it need not be computed.
        """
        sums = iter(above.sums)
        rows = zip(sums, sums, sums, sums, sums, strict=True)
        if above.open_children == 1:
            return next(child for child, row in zip(above.children, rows, strict=True) if row[0])
        best, best_draw, place = 0, -math.inf, -1
        for growing, scored, failures, total, squares in rows:
            place += 1
            if not growing:
                continue
            uniform, angle = random(), random()
            centred = (total - scored * mean) * inverse
            if failures:
                centred += failures * lowest
            count = scored + failures
            weight = prior_weight + count
            middle = centred / weight
            if middle <= best_draw and _SURELY_BELOW < angle < 1.0 - _SURELY_BELOW:
                continue
            squares = (squares - twice_mean * total + scored * mean * mean) * inverse * inverse
            if failures:
                squares += failures * lowest * lowest
            freedom = prior_freedom + count
            spread = prior_squares + squares - centred * centred / weight
            if spread < 0.0:
                spread = 0.0
            power = -2.0 / freedom
            if power < _STEEPEST:
                power = _STEEPEST
            t = sqrt(freedom * ((1.0 - uniform) ** power - 1.0)) * cos(tau * angle)
            drawn = middle + t * sqrt(spread / (freedom * weight))
            if drawn > best_draw:
                best, best_draw = place, drawn
        return above.children[best]

    return draw, highest
