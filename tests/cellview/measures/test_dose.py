"""Dose and response: known slopes, the null, the control."""

from __future__ import annotations

import numpy as np
import pytest

from treewright.cellview.measures import Trial, control, dose_response, trend

DOSES = (0.0, 0.25, 0.5)


def arms(slope: float, noise: float, draw: np.random.Generator, goals: int = 6, seeds: int = 3):
    made = {}
    for dose in DOSES:
        made[dose] = [
            Trial(f"g{g}", s, True, max(1, round(100 + slope * dose + noise * draw.normal())), 1)
            for g in range(goals)
            for s in range(seeds)
        ]
    return made


def steps(trial: Trial) -> float:
    return float(trial.steps)


def test_a_known_slope() -> None:
    found = trend(arms(80, 0.0, np.random.default_rng(0)), steps, seed=0, permutations=999)
    assert (found.blocks, found.slope, found.p) == (18, pytest.approx(80.0), 0.001)


def test_a_goal_that_is_harder_in_general_does_not_matter() -> None:
    made = arms(80, 0.0, np.random.default_rng(0))
    harder = {
        dose: [Trial(t.goal, t.seed, True, t.steps + 1000 * (t.goal == "g1"), 1) for t in trials]
        for dose, trials in made.items()
    }
    assert trend(harder, steps, seed=0, permutations=99) == trend(
        made, steps, seed=0, permutations=99
    )


def test_blocks_without_every_dose_are_left_out() -> None:
    made = arms(80, 0.0, np.random.default_rng(0))
    made[0.5] = made[0.5][:1]
    assert trend(made, steps, seed=0, permutations=9).blocks == 1
    made[0.5] = []
    assert trend(made, steps, seed=0, permutations=9).undefined
    assert (
        trend({0.0: made[0.0]}, steps, seed=0, permutations=9).undefined == "fewer than two doses"
    )


def test_p_values_are_uniform_under_the_null() -> None:
    draw = np.random.default_rng(4)
    ps = np.array(
        [
            trend(arms(0, 20.0, draw, 3, 2), steps, seed=n, permutations=99).p or 0.0
            for n in range(300)
        ]
    )
    assert 0.44 < ps.mean() < 0.56
    assert 0.02 <= (ps <= 0.05).mean() <= 0.09
    assert 0.4 <= (ps <= 0.5).mean() <= 0.6


def test_no_response_at_all_is_no_trend() -> None:
    found = trend(arms(0, 0.0, np.random.default_rng(0)), steps, seed=0, permutations=99)
    assert (found.slope, found.p) == (0.0, 1.0)


def test_the_control_shows_nothing_where_the_trend_is_strong() -> None:
    made = arms(200, 10.0, np.random.default_rng(5), goals=6, seeds=4)
    found = dose_response(made, 1000)
    assert found.steps_trend.p == 0.001
    assert found.control.repetitions == 200
    assert found.control.false_positives is not None
    assert found.control.mean_slope is not None
    assert found.control.false_positives <= 0.12
    assert abs(found.control.mean_slope) < 20
    assert found == dose_response(made, 1000)


def test_the_control_needs_as_many_seeds_as_doses() -> None:
    made = arms(0, 1.0, np.random.default_rng(5), seeds=2)
    found = control(made[0.0], DOSES, steps, seed=0, repetitions=10)
    assert found.false_positives is None
    assert found.undefined == "no goal has an undamaged trial for each of 3 doses: give more seeds"


def test_mean_steps_of_few_goals_are_not_negative() -> None:
    made = {0.0: [Trial(f"g{n}", 0, True, steps, 1) for n, steps in enumerate((1, 1, 90))]}
    (level,) = dose_response(made, 100).levels
    assert level.steps
    assert level.steps.low == 0.0
    assert level.steps.high > 90  # pyright: ignore[reportOptionalOperand]


def test_levels_count_the_unsolved_with_the_limit() -> None:
    made = {0.0: [Trial("a", 0, True, 10, 1)], 0.5: [Trial("a", 0, False, 40, 1)]}
    found = dose_response(made, 50)
    assert [(level.dose, level.trials) for level in found.levels] == [(0.0, 1), (0.5, 1)]
    assert [level.steps.value for level in found.levels if level.steps] == [10, 50]
    assert [level.solved.value for level in found.levels if level.solved] == [1.0, 0.0]
    assert found.solve_trend.slope == pytest.approx(-2.0)
