"""Measures of damage across the trials of an experiment: robustness, dose and response.

Pure; random draws come from a given seed. Formulas: docs/measures.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from treewright.proving.measures.intervals import (
    Estimate,
    clustered_mean,
    mcnemar,
    not_negative,
    rate,
    upper_p,
)
from treewright.proving.records import Iteration

if TYPE_CHECKING:
    import numpy as np


class Trial(msgspec.Struct, frozen=True):
    """`steps` and `attempts` count until the root was solved, or all of them if it was not."""

    goal: str
    seed: int
    solved: bool
    steps: int
    attempts: int

    @property
    def pair(self) -> tuple[str, int]:
        """The goal and the seed: trials of two arms with the same pair are compared."""
        return self.goal, self.seed


def trial_of(goal: str, seed: int, iterations: Sequence[Iteration]) -> Trial:
    """Return the trial of one goal's iterations.

    Iterations in which an agent was idle are steps too.
    """
    attempts = 0
    for steps, turn in enumerate(iterations, 1):
        attempts += len(turn.attempts)
        if 0 in turn.solved:
            return Trial(goal, seed, True, steps, attempts)
    return Trial(goal, seed, False, len(iterations), attempts)


def by_goal(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Return the trials by goal: those of one goal resemble each other, so they are one cluster."""
    clusters: dict[str, list[Trial]] = {}
    for trial in trials:
        clusters.setdefault(trial.goal, []).append(trial)
    return clusters


def restricted(trial: Trial, limit: int) -> int:
    """Return the steps up to a limit; an unsolved trial counts with the limit."""
    return min(trial.steps, limit) if trial.solved else limit


# -- robustness: the cost of damage, relative to the undamaged search ---------------------


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


# -- dose and response: whether more damage costs more -----------------------------------

Response = Callable[[Trial], float]


class Level(msgspec.Struct, frozen=True):
    """One dose: its solve rate, and its mean steps with unsolved trials at the limit."""

    dose: float
    trials: int
    solved: Estimate | None
    steps: Estimate | None


class Trend(msgspec.Struct, frozen=True):
    """The response regressed on the dose, within blocks of equal goal and seed.

    `slope` is per unit of dose. `p` is two-sided, from doses permuted within blocks.
    """

    blocks: int
    slope: float | None
    p: float | None
    undefined: str | None = None


class Control(msgspec.Struct, frozen=True):
    """The same analysis of undamaged trials with made-up doses.

    `false_positives` is the share of `repetitions` with p ≤ 0.05. It is about 0.05 or less if the
    analysis is sound, for any trials.
    """

    repetitions: int
    false_positives: float | None
    mean_slope: float | None
    undefined: str | None = None


class DoseResponse(msgspec.Struct, frozen=True):
    """The response to each dose, the trends over the doses, and the control."""

    levels: tuple[Level, ...]
    solve_trend: Trend
    steps_trend: Trend
    control: Control


def dose_response(
    arms: Mapping[float, Sequence[Trial]],
    limit: int,
    *,
    seed: int = 0,
    permutations: int = 999,
    repetitions: int = 200,
) -> DoseResponse:
    """Return the response to each dose. `arms` are the trials by dose; dose 0 is undamaged."""
    doses = sorted(arms)

    def steps(trial: Trial) -> float:
        return float(restricted(trial, limit))

    return DoseResponse(
        tuple(_level(dose, arms[dose], steps, seed) for dose in doses),
        trend(arms, lambda trial: float(trial.solved), seed=seed, permutations=permutations),
        trend(arms, steps, seed=seed, permutations=permutations),
        control(arms.get(0.0, ()), doses, steps, seed=seed, repetitions=repetitions),
    )


def _level(dose: float, trials: Sequence[Trial], steps: Response, seed: int) -> Level:
    clusters = [[steps(trial) for trial in group] for group in by_goal(trials).values()]
    solved = rate(sum(trial.solved for trial in trials), len(trials))
    return Level(dose, len(trials), solved, clustered_mean(clusters, seed, not_negative))


def trend(
    arms: Mapping[float, Sequence[Trial]], response: Response, *, seed: int, permutations: int
) -> Trend:
    """Return the trend over the blocks that have a trial at every dose."""
    doses = sorted(arms)
    if len(doses) < 2:
        return Trend(0, None, None, "fewer than two doses")
    tables = [{trial.pair: response(trial) for trial in arms[dose]} for dose in doses]
    shared = sorted(set.intersection(*(set(table) for table in tables)))
    if not shared:
        return Trend(0, None, None, "no goal and seed was tried at every dose")
    import numpy as np

    responses = np.array([[table[pair] for table in tables] for pair in shared])
    slope, p = _permuted(np.array(doses), responses, np.random.default_rng(seed), permutations)
    return Trend(len(shared), slope, p)


def control(
    undamaged: Sequence[Trial],
    doses: Sequence[float],
    response: Response,
    *,
    seed: int,
    repetitions: int,
    permutations: int = 199,
) -> Control:
    """Return the control: doses are dealt at random over the seeds of each goal, repeatedly."""
    count = len(doses)
    blocks = [
        [response(trial) for trial in trials]
        for trials in by_goal(undamaged).values()
        if len(trials) >= count
    ]
    if count < 2 or not blocks:
        why = f"no goal has an undamaged trial for each of {count} doses: give more seeds"
        return Control(0, None, None, why if count > 1 else "fewer than two doses")
    import numpy as np

    generator = np.random.default_rng(seed)
    found = [
        _permuted(
            np.array(doses),
            np.array([generator.permutation(block)[:count] for block in blocks]),
            generator,
            permutations,
        )
        for _ in range(repetitions)
    ]
    false = sum(p <= 0.05 for _, p in found) / repetitions
    return Control(repetitions, false, round(float(np.mean([slope for slope, _ in found])), 9))


def _permuted(
    doses: np.ndarray, responses: np.ndarray, generator: np.random.Generator, permutations: int
) -> tuple[float, float]:
    """Return the slope and its two-sided p. A row of `responses` is a block, a column a dose."""
    import numpy as np

    centred = doses - doses.mean()
    scale = len(responses) * float(centred @ centred)
    observed = float((responses @ centred).sum())
    drawn = np.empty(permutations)
    for draw in range(permutations):
        drawn[draw] = (generator.permuted(responses, axis=1) @ centred).sum()
    return round(observed / scale, 9), upper_p(abs(observed), np.abs(drawn))
