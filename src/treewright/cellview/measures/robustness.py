"""Robustness: the cost of damage, relative to the undamaged search of the same goal and seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from treewright.cellview.measures.trials import Trial
from treewright.proving.measures.intervals import Estimate, clustered_mean, mcnemar, rate


class Robustness(msgspec.Struct, frozen=True):
    """A comparison over `pairs` of trials with equal goal and seed.

    `difference` is the damaged solve rate minus the undamaged one. `retained` is the share of the
    goals solved without damage that were solved with damage too. The ratios of steps and attempts
    are geometric means over pairs that both solved. `p` is McNemar's, exact.
    """

    pairs: int
    unpaired: int
    undamaged: Estimate | None
    damaged: Estimate | None
    difference: Estimate | None
    retained: Estimate | None
    steps_ratio: Estimate | None
    attempts_ratio: Estimate | None
    lost: int
    won: int
    p: float | None


def robustness(
    undamaged: Sequence[Trial], damaged: Sequence[Trial], *, seed: int = 0
) -> Robustness:
    """Compare the trials of two arms; trials without a partner are counted and left out."""
    before = {trial.pair: trial for trial in undamaged}
    after = {trial.pair: trial for trial in damaged}
    shared = sorted(before.keys() & after.keys())
    pairs = [(before[pair], after[pair]) for pair in shared]
    both = [(a, b) for a, b in pairs if a.solved and b.solved]
    lost = sum(a.solved and not b.solved for a, b in pairs)
    won = sum(b.solved and not a.solved for a, b in pairs)
    return Robustness(
        pairs=len(pairs),
        unpaired=len(before) + len(after) - 2 * len(pairs),
        undamaged=rate(sum(a.solved for a, _ in pairs), len(pairs)),
        damaged=rate(sum(b.solved for _, b in pairs), len(pairs)),
        difference=_clustered(
            pairs, lambda a, b: float(b.solved) - float(a.solved), seed, _as_difference
        ),
        retained=rate(len(both), len(both) + lost),
        steps_ratio=_clustered(both, lambda a, b: math.log(b.steps / a.steps), seed, math.exp),
        attempts_ratio=_clustered(
            [(a, b) for a, b in both if a.attempts and b.attempts],
            lambda a, b: math.log(b.attempts / a.attempts),
            seed,
            math.exp,
        ),
        lost=lost,
        won=won,
        p=mcnemar(lost, won) if pairs else None,
    )


def _as_difference(value: float) -> float:
    """A scale for differences of rates, which lie between -1 and 1."""
    return max(-1.0, min(1.0, value))


def _clustered(
    pairs: Sequence[tuple[Trial, Trial]],
    value: Callable[[Trial, Trial], float],
    seed: int,
    scale: Callable[[float], float] = float,
) -> Estimate | None:
    clusters: dict[str, list[float]] = {}
    for a, b in pairs:
        clusters.setdefault(a.goal, []).append(value(a, b))
    return clustered_mean(list(clusters.values()), seed, scale)
