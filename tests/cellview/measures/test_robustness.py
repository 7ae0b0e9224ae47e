"""Robustness: pairing, known answers, intervals."""

from __future__ import annotations

import numpy as np
import pytest

from tests.proving.traces import SOLVED, iterations, search
from treewright.cellview.measures import Trial, restricted, robustness, trial_of


def trial(goal: str, seed: int, steps: int, solved: bool = True) -> Trial:
    return Trial(goal, seed, solved, steps, 2 * steps)


BEFORE = [trial(f"g{g}", s, 10 * (g + 1)) for g in range(5) for s in (1, 2)]


def test_no_damage_costs_nothing() -> None:
    found = robustness(BEFORE, BEFORE)
    assert (found.pairs, found.unpaired, found.lost, found.won, found.p) == (10, 0, 0, 0, 1.0)
    assert found.difference
    assert found.steps_ratio
    assert found.retained
    assert (found.difference.value, found.difference.low, found.difference.high) == (0, 0, 0)
    assert (found.steps_ratio.value, found.steps_ratio.low, found.steps_ratio.high) == (1, 1, 1)
    assert found.retained.value == 1.0


def test_known_damage() -> None:
    after = [trial(t.goal, t.seed, 2 * t.steps, solved=t.goal != "g4") for t in BEFORE]
    found = robustness(BEFORE, after)
    assert found.damaged
    assert found.difference
    assert found.retained
    assert found.steps_ratio
    assert found.attempts_ratio
    assert found.damaged.value == 0.8
    assert found.difference.value == pytest.approx(-0.2)
    assert -1 <= found.difference.low < -0.4  # pyright: ignore[reportOptionalOperand]
    assert found.difference.high >= 0  # pyright: ignore[reportOptionalOperand]
    assert found.retained.value == 0.8
    assert (found.lost, found.won, found.p) == (2, 0, 0.5)
    assert found.steps_ratio.value == pytest.approx(2.0)
    assert found.steps_ratio.count == 8
    assert found.attempts_ratio.value == pytest.approx(2.0)


def test_only_equal_goals_and_seeds_are_compared() -> None:
    after = [trial("g0", 1, 20), trial("g0", 3, 500), trial("other", 1, 500)]
    found = robustness(BEFORE, after)
    assert (found.pairs, found.unpaired) == (1, 11)
    assert found.steps_ratio
    assert found.steps_ratio.value == pytest.approx(2.0)


def test_order_does_not_matter_and_swapping_inverts() -> None:
    after = [trial(t.goal, t.seed, t.steps + 7, t.steps < 40) for t in BEFORE]
    found = robustness(BEFORE, after)
    assert found == robustness(BEFORE[::-1], after[::-1])
    swapped = robustness(after, BEFORE)
    assert found.difference
    assert swapped.difference
    assert found.steps_ratio
    assert swapped.steps_ratio
    assert swapped.difference.value == -found.difference.value
    assert swapped.steps_ratio.value == pytest.approx(1 / found.steps_ratio.value)
    assert (swapped.lost, swapped.won) == (found.won, found.lost)


def test_nothing_in_common_is_undefined() -> None:
    found = robustness(BEFORE, [])
    assert (found.pairs, found.unpaired, found.p, found.difference) == (0, 10, None, None)
    assert (found.damaged, found.retained, found.steps_ratio) == (None, None, None)


def test_p_values_are_not_too_small_under_the_null() -> None:
    draw = np.random.default_rng(2)
    small = 0
    for _ in range(300):
        before = [trial(f"g{g}", 0, 10, bool(draw.random() < 0.6)) for g in range(40)]
        after = [trial(f"g{g}", 0, 10, bool(draw.random() < 0.6)) for g in range(40)]
        p = robustness(before, after).p
        assert p is not None
        small += p <= 0.05
    assert small / 300 <= 0.05, "the exact test is conservative"


def test_a_trial_counts_until_the_root_is_solved() -> None:
    turns = iterations(search(SOLVED, limit=200))
    found = trial_of("g", 7, turns)
    assert (found.goal, found.seed, found.solved, found.steps) == ("g", 7, True, len(turns))
    assert found.attempts == turns[-1].counters.attempts
    cut = trial_of("g", 7, turns[:-1])
    assert (cut.solved, cut.steps) == (False, len(turns) - 1)
    assert restricted(found, 1000) == len(turns)
    assert restricted(found, 2) == 2
    assert restricted(cut, 1000) == 1000
