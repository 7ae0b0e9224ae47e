"""Delayed gratification: known answers, invariances, its edges, its null."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.proving.traces import SOLVED, iterations, search
from treewright.proving.measures.gratification import (
    Excursion,
    excursions_of,
    gratification,
    root_series,
)

series_of_values = st.lists(st.integers(0, 50).map(lambda n: n / 64), max_size=60)


def test_one_dip() -> None:
    found = gratification([0.5, 0.3, 0.9])
    assert found.excursions == (Excursion(0, 1, 2, 0.2, pytest.approx(0.6)),)
    assert found.ratio == found.mean_ratio == pytest.approx(3.0)
    assert found.open_dip == 0.0


def test_dips_are_pooled_and_averaged() -> None:
    found = gratification([1.0, 0.5, 1.0, 0.75, 1.5, 1.25])
    assert [(e.dip, e.gain) for e in found.excursions] == [(0.5, 0.5), (0.25, 0.75)]
    assert found.ratio == pytest.approx(1.25 / 0.75)
    assert found.mean_ratio == pytest.approx((1 + 3) / 2)
    assert found.open_dip == 0.25


def test_plateaus_end_neither_a_decline_nor_a_rise() -> None:
    stepped = [0.5, 0.5, 0.4, 0.4, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75]
    found, _ = excursions_of(stepped)
    assert found == [Excursion(1, 4, 8, 0.25, 0.5)]


@pytest.mark.parametrize(
    ("series", "why"),
    [
        ([], "fewer than three values"),
        ([0.5], "fewer than three values"),
        ([0.5, 0.5, 0.5, 0.5], "no dip"),
        ([0.1, 0.2, 0.3], "no dip"),
        ([0.3, 0.2, 0.1], "no rise after the only dip"),
        ([0.1, 0.3, 0.2], "no rise after the only dip"),
    ],
)
def test_gratification_is_undefined_without_a_dip_and_a_rise(series: list[float], why: str) -> None:
    found = gratification(series)
    assert (found.ratio, found.mean_ratio, found.p, found.undefined) == (None, None, None, why)


@given(series_of_values)
def test_repeating_values_changes_nothing(series: list[float]) -> None:
    twice = [value for value in series for _ in range(2)]
    plain, slow = excursions_of(series), excursions_of(twice)
    assert [(e.dip, e.gain) for e in plain[0]] == [(e.dip, e.gain) for e in slow[0]]
    assert plain[1] == slow[1]


@given(series_of_values, st.sampled_from([0.25, 0.5, 2.0, 8.0]), st.integers(-4, 4))
def test_ratios_depend_on_neither_scale_nor_offset(
    series: list[float], scale: float, offset: int
) -> None:
    moved = gratification([offset + scale * value for value in series], permutations=0)
    plain = gratification(series, permutations=0)
    assert moved.ratio == pytest.approx(plain.ratio)
    assert moved.mean_ratio == pytest.approx(plain.mean_ratio)


@given(series_of_values)
def test_dips_and_gains_account_for_the_whole_way(series: list[float]) -> None:
    """End = start + first rise - all dips + all gains."""
    found, open_dip = excursions_of(series)
    if not series:
        return
    first = next((i for i in range(1, len(series)) if series[i] < series[i - 1]), len(series))
    peak = series[first - 1]
    travelled = sum(e.gain - e.dip for e in found) - open_dip
    assert peak + travelled == pytest.approx(series[-1])


def test_the_jump_to_certainty_is_not_an_estimate() -> None:
    lines = iterations(search(SOLVED, limit=200))
    assert 0 in lines[-1].solved
    assert root_series(lines, settled=True) == [turn.root_value for turn in lines]
    assert root_series(lines, settled=True)[-1] == 1.0
    assert root_series(lines) == [turn.root_value for turn in lines[:-1]]


def test_a_seed_gives_the_same_numbers() -> None:
    series = np.random.default_rng(1).random(40).tolist()
    assert gratification(series, seed=4) == gratification(series, seed=4)
    assert gratification(series, seed=4).p != gratification(series, seed=5).p


def test_few_excursions_have_no_p_value() -> None:
    assert gratification([0.5, 0.4, 0.6] * 3).p is None
    assert gratification([0.5, 0.4, 0.6] * 5).p is not None


def test_p_values_are_uniform_under_the_null() -> None:
    generator = np.random.default_rng(11)
    ps = []
    for seed in range(300):
        moves = generator.exponential(size=30) * np.array([-1, 1] * 15)
        found = gratification(np.cumsum([0.0, *moves]).tolist(), seed=seed, permutations=99)
        assert found.p is not None
        ps.append(found.p)
    assert 0.44 < np.mean(ps) < 0.56
    assert 0.02 <= np.mean(np.array(ps) <= 0.05) <= 0.09
    assert 0.4 <= np.mean(np.array(ps) <= 0.5) <= 0.6


def test_deep_dips_that_pay_are_told_from_chance() -> None:
    dips = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.02, 0.15])
    patient = np.cumsum([1.0, *np.column_stack([-dips, 2 * dips]).ravel()])
    impatient = np.cumsum([1.0, *np.column_stack([-dips, 0.4 - dips]).ravel()])
    found = gratification(patient.tolist())
    assert found.ratio == pytest.approx(2.0)
    assert found.p is not None
    assert found.p < 0.01
    assert (gratification(impatient.tolist()).p or 0) > 0.9
