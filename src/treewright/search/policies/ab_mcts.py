"""Adaptive branching MCTS: widen or deepen by Thompson sampling.

After Inoue et al. 2025 (arXiv 2503.04412), the variant that aggregates nodes with Gaussian
posteriors. At each node, "grow a new child" (GEN) and "follow the known children" (CONT) have a
normal-inverse-gamma posterior each, and so has every child below CONT. Each posterior is sampled
once and the highest sample wins. GEN has observed the values of the node's own children, CONT the
values of everything deeper, a child the values of its subtree. Values are standardised by the mean
and the deviation of the run, so the prior has no scale. A failure counts as the lowest value seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import ClassVar

from treewright.search.policies.policy import Choice, Policy, Positive
from treewright.search.tree import Branch, Tree

_STEEPEST = -18.0
"""The smallest uniform number, 2**-53, to this power is still a float."""


class AbMcts(Policy, frozen=True, tag="ab-mcts"):
    """Adaptive branching MCTS.

    The prior is `prior_weight` observations of the run's mean with deviation `prior_spread`;
    `prior_freedom` are its degrees of freedom.
    """

    name: ClassVar[str] = "ab-mcts"
    summary: ClassVar[str] = "widen or deepen by Thompson sampling (AB-MCTS-A)"
    sums_subtrees: ClassVar[bool] = True
    branching: ClassVar[int | None] = 32

    prior_weight: Positive = 1.0
    prior_freedom: Positive = 1.0
    prior_spread: Positive = 1.0

    def choose(self, tree: Tree, rng: Random) -> Choice | None:
        """Descend to the node that grows next; None if no node can grow."""
        branch = tree.root
        if not branch.growing:
            return None
        sample = _posterior(self, tree, rng)
        while True:
            grows = tree.can_grow(branch)
            if branch.growing == grows:
                break  # nothing below it can grow
            if grows and _prefers_new_child(tree, branch, sample):
                break
            branch = _best_child(branch, sample)
        return Choice(branch.number, _choose_action(tree, branch, sample))


Sample = Callable[[int, int, float, float], float]
"""Samples a mean, given the number of scored and failed observations, and the sum and the sum of
squares of the scored ones, relative to the tree's origin."""


def _posterior(policy: AbMcts, tree: Tree, rng: Random) -> Sample:
    """Return the sampling function for one choice, standardised by the values of the whole run."""
    root = tree.root
    scored = root.scored
    mean = root.total / scored if scored else 0.0
    variance = max(0.0, root.squares / scored - mean * mean) if scored else 0.0
    inverse = 1.0 / math.sqrt(variance) if variance > 0.0 else 0.0
    lowest = (tree.lowest - tree.origin - mean) * inverse if scored else 0.0
    prior_weight, prior_freedom = policy.prior_weight, policy.prior_freedom
    prior_squares = prior_freedom * policy.prior_spread**2
    twice_mean = 2.0 * mean
    random, sqrt, cos, tau = rng.random, math.sqrt, math.cos, math.tau

    def sample(scored: int, failures: int, total: float, squares: float) -> float:
        squares = (squares - twice_mean * total + scored * mean * mean) * inverse * inverse
        total = (total - scored * mean) * inverse
        count = scored
        if failures:
            squares += failures * lowest * lowest
            total += failures * lowest
            count += failures
        weight = prior_weight + count
        freedom = prior_freedom + count
        # The squares of the prior, those among the observations, and those between the two.
        spread = prior_squares + squares - total * total / weight
        if spread < 0.0:
            spread = 0.0
        # The marginal is Student's t, sampled exactly from two uniforms (Bailey 1994).
        power = -2.0 / freedom
        if power < _STEEPEST:
            power = _STEEPEST
        t = sqrt(freedom * ((1.0 - random()) ** power - 1.0)) * cos(tau * random())
        return total / weight + t * sqrt(spread / (freedom * weight))

    return sample


def _prefers_new_child(tree: Tree, branch: Branch, sample: Sample) -> bool:
    """Whether GEN wins against CONT at this node."""
    own = len(branch.children)
    generate = sample(own, branch.child_failures, branch.child_total, branch.child_squares)
    deeper, total, squares = branch.scored - own, branch.total, branch.squares
    if branch.node is not None and branch.node.score is not None:
        deeper -= 1
        distance = branch.value - tree.origin
        total -= distance
        squares -= distance * distance
    follow = sample(
        deeper,
        branch.failures - branch.child_failures,
        total - branch.child_total,
        squares - branch.child_squares,
    )
    return generate >= follow


def _best_child(above: Branch, sample: Sample) -> Branch:
    """Sample every child that can grow and return the highest; a single one is not sampled."""
    children = [child for child in above.children if child.growing]
    if len(children) == 1:
        return children[0]
    best, highest = above, -math.inf
    for child in children:
        failures = child.failures
        value = sample(child.visits - failures, failures, child.total, child.squares)
        if value > highest:
            best, highest = child, value
    return best


def _choose_action(tree: Tree, branch: Branch, sample: Sample) -> str | None:
    """Sample each action by the values of the children that it made at this node."""
    if len(tree.actions) < 2:
        return tree.actions[0] if tree.actions else None

    def sample_action(action: str) -> float:
        values = [c.value - tree.origin for c in branch.children if c.action == action]
        return sample(len(values), 0, sum(values), sum(value * value for value in values))

    return max(tree.actions, key=sample_action)
