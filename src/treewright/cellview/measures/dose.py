"""Dose and response: whether more damage costs more, with a control that must show no effect."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from treewright.cellview.measures.trials import Trial, by_goal, restricted
from treewright.proving.measures.intervals import (
    Estimate,
    clustered_mean,
    not_negative,
    rate,
    upper_p,
)

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
    centred = doses - doses.mean()
    scale = len(responses) * float(centred @ centred)
    observed = float((responses @ centred).sum())
    drawn = np.empty(permutations)
    for draw in range(permutations):
        drawn[draw] = (generator.permuted(responses, axis=1) @ centred).sum()
    return round(observed / scale, 9), upper_p(abs(observed), np.abs(drawn))
