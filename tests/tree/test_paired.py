"""The interval of a paired mean: its coverage, its symmetries, its exact bits."""

from __future__ import annotations

import math
import random
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from treewright.tree.deciding import paired

reasonable = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 6))
samples = st.lists(reasonable, min_size=2, max_size=30)


def draw(kind: str, generator: random.Random) -> float:
    if kind == "normal":
        return generator.gauss(0, 1)
    if kind == "uniform":
        return generator.uniform(-1, 1)
    return generator.expovariate(1) - 1


@pytest.mark.parametrize(
    ("n", "kind", "at_least", "at_most"),
    [
        (3, "normal", 0.94, 0.98),
        (5, "normal", 0.94, 0.98),
        (12, "normal", 0.935, 0.975),
        (25, "normal", 0.935, 0.965),
        (12, "uniform", 0.93, 0.975),
        (25, "skewed", 0.89, 0.965),
    ],
)
def test_the_interval_covers_the_mean_at_its_confidence_level(n, kind, at_least, at_most) -> None:
    generator = random.Random(f"{n}{kind}")
    trials, covered, above, below = 1500, 0, 0, 0
    for _ in range(trials):
        bounds = paired.interval([draw(kind, generator) for _ in range(n)], seed=7)
        assert bounds is not None
        covered += bounds[0] <= 0 <= bounds[1]
        above += bounds[0] > 0
        below += bounds[1] < 0
    assert at_least <= covered / trials <= at_most
    if kind != "skewed":
        assert max(above, below) / trials < 0.045, "noise passes for a gain once in forty"


def test_one_pair_has_no_interval() -> None:
    assert paired.interval([1.0], 0) is None
    assert paired.interval([], 0) is None


@given(samples, st.integers(0, 2**40))
def test_the_interval_surrounds_the_mean_and_a_constant_has_no_width(deltas, seed) -> None:
    low, high = paired.interval(deltas, seed) or (0, 0)
    slack = 1e-9 * (1 + max(map(abs, deltas)))
    assert low - slack <= paired.mean(deltas) <= high + slack
    assert min(deltas) - slack <= low or len(deltas) < 8
    constant = paired.interval([deltas[0]] * len(deltas), seed)
    assert constant == pytest.approx((deltas[0], deltas[0]), rel=1e-12, abs=1e-12)


@given(samples, st.sampled_from([0.25, 0.5, 2.0, 1024.0]))
@example([1.0, 54994.232808, 54994.232808, -982550.071981], 0.25)
def test_scaling_the_data_scales_the_interval_exactly(deltas, factor) -> None:
    low, high = paired.interval(deltas, 3) or (0, 0)
    assert paired.interval([x * factor for x in deltas], 3) == (low * factor, high * factor)


@given(samples, reasonable)
def test_shifting_the_data_shifts_the_interval(deltas, shift) -> None:
    low, high = paired.interval(deltas, 3) or (0, 0)
    moved = paired.interval([x + shift for x in deltas], 3)
    size = max(map(abs, [*deltas, shift, 1.0]))
    assert moved == pytest.approx((low + shift, high + shift), abs=1e-9 * size)


@given(samples, st.randoms(use_true_random=False))
def test_the_mean_does_not_depend_on_the_order(deltas, generator) -> None:
    shuffled = list(deltas)
    generator.shuffle(shuffled)
    assert paired.mean(shuffled) == paired.mean(deltas)


extreme = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(extreme, min_size=1, max_size=12))
@example([sys.float_info.max] * 3)
@example([-sys.float_info.max] * 7)
def test_no_finite_number_is_too_large_or_too_small(values) -> None:
    mean = paired.mean(values)
    slack = 1e-9 * max(abs(value) for value in values)
    assert min(values) - slack <= mean <= max(values) + slack
    bounds = paired.interval(values, 1)
    if len(values) > 1:
        assert bounds is not None
        assert not math.isnan(bounds[0])
        assert bounds[0] <= bounds[1]


@given(st.integers(-1000, 1000), samples)
def test_the_interval_scales_to_extreme_numbers(exponent, deltas) -> None:
    """A diverging candidate gives numbers near the end of the range; they must not end the
    evaluation."""
    deltas = [float(round(x)) for x in deltas]
    scaled = [math.ldexp(x, exponent) for x in deltas]
    low, high = paired.interval(deltas, 5) or (0, 0)
    expected = (_ldexp(low, exponent), _ldexp(high, exponent))
    assert paired.interval(scaled, 5) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def _ldexp(x: float, exponent: int) -> float:
    try:
        return math.ldexp(x, exponent)
    except OverflowError:
        return math.copysign(sys.float_info.max, x)


def test_many_pairs_use_the_normal_interval() -> None:
    generator = random.Random(1)
    deltas = [generator.gauss(0.1, 1) for _ in range(5000)]
    low, high = paired.interval(deltas, 0) or (0, 0)
    assert high - low == pytest.approx(2 * 1.96 / math.sqrt(5000), rel=0.05)


GOLDEN_3 = [0.5, 0.25, 0.75]
GOLDEN_12 = [0.1, -0.2, 0.3, 0.4, 0.05, 0.6, -0.7, 0.8, 0.15, 0.2, 0.25, -0.1]


def test_the_interval_has_the_same_bits_on_every_machine() -> None:
    assert [x.hex() for x in paired.interval(GOLDEN_3, 0) or ()] == [
        "-0x1.efc1cbdd65958p-4",
        "0x1.1efc1cbdd6596p+0",
    ]
    assert [x.hex() for x in paired.interval(GOLDEN_12, 0) or ()] == [
        "-0x1.ccccccccccccdp-4",
        "0x1.8888888888889p-2",
    ]
    assert [x.hex() for x in paired.interval(GOLDEN_12, 12345) or ()] == [
        "-0x1.fffffffffffffp-4",
        "0x1.9111111111110p-2",
    ]
