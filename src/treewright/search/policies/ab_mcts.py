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
from random import Random
from typing import ClassVar

from treewright.search.policies.base import Choice, Policy, Positive
from treewright.search.tree import Branch, Tree

_STEEPEST = -18.0
"""The smallest uniform number, 2**-53, to this power is still a float."""


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
        scale = _Scale(tree)
        while True:
            grows = tree.can_grow(branch)
            below = [child for child in branch.children if child.growing]
            if not below:
                break
            if grows and self._widens(branch, scale, rng):
                break
            branch = below[0] if len(below) == 1 else self._select(below, scale, rng)
        return Choice(branch.number, self._action(tree, branch, scale, rng))

    def _widens(self, branch: Branch, scale: _Scale, rng: Random) -> bool:
        own = len(branch.children)
        generate = self._draw(
            own, branch.child_failures, branch.child_total, branch.child_squares, scale, rng
        )
        self_scored = branch.node is not None and branch.node.score is not None
        deeper_total, deeper_squares = branch.total, branch.squares
        deeper = branch.scored - own
        if self_scored:
            deeper -= 1
            distance = branch.value - scale.origin
            deeper_total -= distance
            deeper_squares -= distance * distance
        follow = self._draw(
            deeper,
            branch.failures - branch.child_failures,
            deeper_total - branch.child_total,
            deeper_squares - branch.child_squares,
            scale,
            rng,
        )
        return generate >= follow

    def _select(self, below: list[Branch], scale: _Scale, rng: Random) -> Branch:
        best, best_draw = below[0], -math.inf
        for child in below:
            draw = self._draw(child.scored, child.failures, child.total, child.squares, scale, rng)
            if draw > best_draw:
                best, best_draw = child, draw
        return best

    def _action(self, tree: Tree, branch: Branch, scale: _Scale, rng: Random) -> str | None:
        """Where there are several ways to grow: each by the children it made here."""
        if len(tree.actions) < 2:
            return tree.actions[0] if tree.actions else None
        best, best_draw = tree.actions[0], -math.inf
        for action in tree.actions:
            values = [
                child.value - scale.origin for child in branch.children if child.action == action
            ]
            squares = sum(value * value for value in values)
            draw = self._draw(len(values), 0, sum(values), squares, scale, rng)
            if draw > best_draw:
                best, best_draw = action, draw
        return best

    def _draw(
        self,
        scored: int,
        failures: int,
        total: float,
        squares: float,
        scale: _Scale,
        rng: Random,
    ) -> float:
        """A mean drawn from the posterior, given so many observations with these sums."""
        mean, inverse, lowest = scale.mean, scale.inverse, scale.lowest
        count = scored + failures
        squares = (squares - 2.0 * mean * total + scored * mean * mean) * inverse * inverse
        squares += failures * lowest * lowest
        total = (total - scored * mean) * inverse + failures * lowest
        weight = self.prior_weight + count
        freedom = self.prior_freedom + count
        # The prior's squares, those within the observations, and those between it and them.
        spread = self.prior_freedom * self.prior_spread**2 + squares - total * total / weight
        # The marginal is Student's t; drawn exactly from two uniforms (Bailey 1994).
        power = max(-2.0 / freedom, _STEEPEST)
        radius = freedom * ((1.0 - rng.random()) ** power - 1.0)
        t = math.sqrt(radius) * math.cos(math.tau * rng.random())
        return total / weight + t * math.sqrt(max(0.0, spread) / (freedom * weight))


class _Scale:
    """The run's mean and deviation, in the tree's own coordinates."""

    __slots__ = ("inverse", "lowest", "mean", "origin")

    def __init__(self, tree: Tree) -> None:
        root = tree.root
        scored = root.scored
        self.origin = tree.origin
        self.mean = root.total / scored if scored else 0.0
        variance = max(0.0, root.squares / scored - self.mean * self.mean) if scored else 0.0
        self.inverse = 1.0 / math.sqrt(variance) if variance > 0.0 else 0.0
        self.lowest = (tree.lowest - tree.origin - self.mean) * self.inverse if scored else 0.0
