"""The bandit: its formula, its trials, and that it finds the better strategy."""

from __future__ import annotations

import math
import random

import pytest

from treewright.orchestrator.bandit import ALPHA, Arm, Bandit
from treewright.orchestrator.types import StrategyType

MICRO, SEARCH = StrategyType.MICRO, StrategyType.SEARCH


def test_the_average_moves_by_a_tenth() -> None:
    arm = Arm().after(True, 2.0)
    assert arm == Arm(0.55, 2.0, 1, 1)
    arm = arm.after(False, 4.0)
    assert arm.success_rate == pytest.approx(0.9 * 0.55)
    assert arm.seconds == pytest.approx(0.9 * 2.0 + ALPHA * 4.0)
    assert (arm.trials, arm.successes) == (2, 1)


def test_the_score_is_the_documented_formula() -> None:
    bandit = Bandit(
        {("", MICRO): Arm(0.8, 2.0, 4, 3), ("", SEARCH): Arm(0.4, 4.0, 12, 5)},
        strategies=(MICRO, SEARCH),
        exploration=1.5,
    )
    rates = {MICRO: 0.8 / 2.0, SEARCH: 0.4 / 4.0}
    for strategy, trials in ((MICRO, 4), (SEARCH, 12)):
        expected = rates[strategy] / rates[MICRO] + 1.5 * math.sqrt(2 * math.log(17) / trials)
        assert bandit.score(strategy) == pytest.approx(expected)


def test_every_score_is_positive_before_anything_is_known() -> None:
    assert all(Bandit().score(strategy) > 0 for strategy in StrategyType)


def test_a_cheap_strategy_is_preferred_to_an_expensive_one_of_the_same_success() -> None:
    arms = {("", MICRO): Arm(0.5, 10.0, 50, 25), ("", SEARCH): Arm(0.5, 1.0, 50, 25)}
    assert Bandit(arms).rank([MICRO, SEARCH]) == [SEARCH, MICRO]


def test_what_is_known_of_a_class_outweighs_what_is_known_in_general() -> None:
    bandit = Bandit(exploration=0.1)
    for _ in range(60):
        bandit.tell(MICRO, "logic", True, 1.0)
        bandit.tell(SEARCH, "logic", False, 1.0)
        bandit.tell(MICRO, "lists", False, 1.0)
        bandit.tell(SEARCH, "lists", True, 1.0)
    assert bandit.rank([MICRO, SEARCH], "logic")[0] is MICRO
    assert bandit.rank([MICRO, SEARCH], "lists")[0] is SEARCH
    assert bandit.arm(MICRO).trials == 120


def test_failures_count_so_a_strategy_that_never_wins_falls_behind() -> None:
    generator = random.Random(7)
    bandit = Bandit(strategies=(MICRO, SEARCH))
    chosen = []
    for _ in range(2000):
        first = bandit.rank([MICRO, SEARCH])[0]
        chosen.append(first)
        rate = 0.7 if first is SEARCH else 0.1
        bandit.tell(first, "", generator.random() < rate, 1.0)
    assert chosen[-500:].count(SEARCH) > 400
    assert MICRO in chosen[-500:], "exploration goes on"
