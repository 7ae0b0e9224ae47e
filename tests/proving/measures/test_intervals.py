"""Intervals: known answers, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from treewright.proving.measures.intervals import clustered_mean, mcnemar, rate, upper_p


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [(8, 10, 0.4902, 0.9433), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (1, 1, 0.2065, 1.0)],
)
def test_wilson_as_in_the_tables(successes: int, count: int, low: float, high: float) -> None:
    found = rate(successes, count)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high), abs=5e-5)


def test_a_rate_of_nothing_is_nothing() -> None:
    assert rate(0, 0) is None
    assert clustered_mean([], 0) is None
    assert clustered_mean([[]], 0) is None


@given(st.integers(0, 60), st.integers(0, 60))
def test_wilson_contains_the_share_and_mirrors(won: int, lost: int) -> None:
    found, mirrored = rate(won, won + lost), rate(lost, won + lost)
    if found is None or mirrored is None:
        assert won + lost == 0
        return
    assert 0 <= found.low <= found.value <= found.high <= 1  # pyright: ignore[reportOptionalOperand]
    assert found.low == pytest.approx(1 - mirrored.high)  # pyright: ignore[reportOptionalOperand]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_wilson_covers(share: float) -> None:
    count = 40
    exact = 0.0
    for successes in range(count + 1):
        found = rate(successes, count)
        assert found is not None
        if found.low <= share <= found.high:  # pyright: ignore[reportOptionalOperand]
            weight = math.comb(count, successes)
            exact += weight * share**successes * (1 - share) ** (count - successes)
    assert 0.93 <= exact <= 0.98


def test_values_of_one_cluster_are_not_taken_for_independent() -> None:
    """Repeating every value within its cluster adds nothing, and narrows nothing."""
    generator = np.random.default_rng(5)
    once = [[float(value)] for value in generator.normal(size=12)]
    often = [cluster * 9 for cluster in once]
    narrow = clustered_mean([[v] for cluster in often for v in cluster], 1)
    first, second = clustered_mean(once, 1), clustered_mean(often, 1)
    assert first
    assert second
    assert narrow
    assert (second.low, second.high) == pytest.approx((first.low, first.high))
    assert narrow.high - narrow.low < 0.5 * (first.high - first.low)  # pyright: ignore[reportOptionalOperand]


@pytest.mark.parametrize("count", [3, 6, 12, 25])
def test_the_interval_of_the_mean_covers(count: int) -> None:
    generator = np.random.default_rng(8)
    hits = 0
    for seed in range(200):
        found = clustered_mean([[float(v)] for v in generator.normal(2.0, 1.0, count)], seed)
        assert found is not None
        hits += found.low <= 2.0 <= found.high  # pyright: ignore[reportOptionalOperand]
    assert 0.9 <= hits / 200 <= 0.995


def test_fewer_than_three_clusters_have_no_interval() -> None:
    for clusters in ([[1.0, 2.0, 3.0]], [[1.0, 2.0], [3.0]]):
        found = clustered_mean(clusters, 0)
        assert found is not None
        assert (found.value, found.low, found.high, found.count) == (2.0, None, None, 3)


def test_few_clusters_that_agree_do_not_hide_their_noise() -> None:
    found = clustered_mean([[0.0, -1.0, -1.0]] * 3, 0)
    assert found is not None
    assert found.low < -1.0  # pyright: ignore[reportOptionalOperand]
    assert found.high > -0.4  # pyright: ignore[reportOptionalOperand]


def test_scale_is_applied_to_all_three() -> None:
    plain, scaled = (clustered_mean([[0.0], [1.0], [2.0]], 3, scale) for scale in (float, math.exp))
    assert plain
    assert scaled
    assert scaled.value == math.exp(plain.value)
    assert scaled.high == math.exp(plain.high)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("lost", "won", "p"),
    [(0, 0, 1.0), (5, 0, 0.0625), (0, 6, 0.03125), (3, 3, 1.0), (1, 9, 0.0215)],
)
def test_mcnemar_is_the_binomial_test(lost: int, won: int, p: float) -> None:
    assert mcnemar(lost, won) == pytest.approx(p, abs=5e-5)
    assert mcnemar(won, lost) == mcnemar(lost, won)


def test_a_permutation_p_is_never_zero_and_counts_ties() -> None:
    assert upper_p(9.0, np.zeros(99)) == 0.01
    assert upper_p(0.0, np.zeros(99)) == 1.0
    assert upper_p(0.1 + 0.2, np.full(9, 0.3)) == 1.0
