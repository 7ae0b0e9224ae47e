"""Scoring, intervals and the gate: no unmeasured, unclear or worse candidate is promoted."""

from __future__ import annotations

import json
import math
import random
import sys

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.tree.making import COST, LOSS, recommendation, results
from treewright.tree.config import MetricConfig
from treewright.tree.deciding import paired, promotion, scoring
from treewright.tree.deciding.results import Problems, Results
from treewright.tree.records.model import Comparison, EvalError, Recommendation

IDS = range(8)
BASE = [10.0 + i for i in IDS]
values = st.floats(-1e9, 1e9, allow_nan=False)
any_values = st.floats(allow_nan=False, allow_infinity=False)
columns = st.lists(values, min_size=8, max_size=8)


def compare(base, candidate, metrics=(LOSS,), seed: int = 0, ids=IDS) -> Comparison:
    if not isinstance(base, Results):
        base = results(loss=base)
    if not isinstance(candidate, Results):
        candidate = results(loss=candidate)
    return scoring.compare(base, candidate, ids, metrics, seed)


def passes(comparison: Comparison) -> bool:
    return promotion.decide_gate(comparison.recommendation, None).passed


def test_a_clear_improvement_passes() -> None:
    found = compare(BASE, [x - 1 for x in BASE])
    said = found.recommendation
    assert (said.should_explore, said.grade) == (True, "strong")
    assert said.reasons == ["primary_metric_improved"]
    assert said.score == pytest.approx(1 / 13.5)
    assert (said.rows_used, said.rows_expected) == (8, 8)
    metric = found.metrics[0]
    assert (metric.pairs, metric.gain, metric.mean_delta, metric.verdict) == (8, 1, -1, "improved")
    assert passes(found)


def test_a_clear_regression_fails() -> None:
    found = compare(BASE, [x + 1 for x in BASE])
    assert found.recommendation.reasons == ["primary_metric_regressed"]
    assert found.recommendation.grade == "weak"
    assert not passes(found)


def test_the_direction_decides_which_value_is_better() -> None:
    up = MetricConfig(name="loss", direction="maximize", primary=True)
    assert passes(compare(BASE, [x + 1 for x in BASE], [up]))
    assert not passes(compare(BASE, [x - 1 for x in BASE], [up]))


@given(columns, st.randoms(use_true_random=False))
def test_noise_is_not_an_improvement(base, generator: random.Random) -> None:
    """Differences that cancel exactly are no evidence, however large they are."""
    noise = [generator.uniform(0, 100) for _ in range(4)]
    noise += [-x for x in noise]
    generator.shuffle(noise)
    found = compare([0.0] * 8, noise)
    assert found.metrics[0].verdict == "unchanged"
    assert found.recommendation.reasons == ["insufficient_signal"]
    assert not passes(found)


def test_noise_passes_the_gate_as_rarely_as_the_interval_promises() -> None:
    generator = random.Random(5)
    trials = 600
    passed = sum(
        passes(compare([0.0] * 8, [generator.gauss(0, 1) for _ in IDS])) for _ in range(trials)
    )
    assert passed / trials < 0.05


@pytest.mark.parametrize(("gain", "verdict"), [(0.5, "unchanged"), (0.51, "improved")])
def test_a_gain_within_the_tolerance_does_not_count(gain: float, verdict: str) -> None:
    metric = MetricConfig(name="loss", direction="minimize", primary=True, tolerance=0.5)
    assert compare(BASE, [x - gain for x in BASE], [metric]).metrics[0].verdict == verdict
    worse = compare(BASE, [x + gain for x in BASE], [metric]).metrics[0].verdict
    assert worse == {"unchanged": "unchanged", "improved": "regressed"}[verdict]


def test_one_pair_is_not_a_measurement() -> None:
    found = compare([10.0], [1.0], ids=range(1))
    assert found.metrics[0].verdict == "unknown"
    assert not passes(found)


wrong = st.sampled_from(
    [
        "missing_column", "bad_config_id", "duplicate_config_id", "incomplete_rows",
        "non_finite_metric", "non_numeric_metric", "unreadable_results", "duplicate_column",
    ]
)  # fmt: skip


@given(code=wrong, gain=st.floats(1e-3, 1e6))
def test_any_problem_with_the_candidates_rows_keeps_it_out(code, gain) -> None:
    candidate = results(loss=[x - gain for x in BASE])
    problems = Problems()
    problems.add(code, "somewhere")
    found = compare(BASE, Results(candidate.values, candidate.sound_ids, set(), problems))
    assert not found.recommendation.should_explore
    assert found.recommendation.grade == "weak"
    assert code in found.recommendation.reasons
    assert not passes(found)


@given(missing=st.sets(st.sampled_from(IDS), min_size=1), gain=st.floats(1e-3, 1e6))
def test_a_missing_row_keeps_a_candidate_out(missing, gain) -> None:
    kept = {i: BASE[i] - gain for i in IDS if i not in missing}
    found = compare(BASE, results(loss=kept))
    assert found.recommendation.reasons[0] == "incomplete_rows"
    assert found.recommendation.rows_used == 8 - len(missing)
    assert not found.recommendation.should_explore
    assert not passes(found)


@given(missing=st.sets(st.sampled_from(IDS), min_size=1))
def test_an_incomplete_baseline_cannot_be_beaten(missing) -> None:
    base = results(loss={i: BASE[i] for i in IDS if i not in missing})
    found = compare(base, [x - 1 for x in BASE])
    assert "incomplete_baseline" in found.recommendation.reasons
    assert not passes(found)


@given(st.lists(any_values, min_size=8, max_size=8), st.lists(any_values, min_size=8, max_size=8))
def test_any_finite_numbers_can_be_compared_and_written_down(base, candidate) -> None:
    found = compare(
        results(loss=base, cost=candidate), results(loss=candidate, cost=base), (LOSS, COST)
    )
    assert math.isfinite(found.recommendation.score)
    encoded = msgspec.json.encode(found)
    assert msgspec.json.decode(encoded, type=Comparison) == found
    primary = json.loads(encoded)["metrics"][0]
    assert all(primary[name] is not None for name in ("gain", "gain_low", "gain_high"))


@given(columns, columns, st.integers(0, 2**32))
def test_a_passing_candidate_has_a_gain_and_no_primary_regression(base, candidate, seed) -> None:
    found = compare(
        results(loss=base, cost=base), results(loss=candidate, cost=candidate), (LOSS, COST), seed
    )
    primary = found.metrics[0]
    if passes(found):
        assert primary.verdict != "regressed"
        assert primary.gain is not None
        assert any(metric.verdict == "improved" for metric in found.metrics)
    if found.recommendation.should_explore:
        assert primary.verdict == "improved"
        assert primary.gain_low is not None
        assert primary.gain_low > 0


@given(columns, columns, st.floats(0, 1e6))
def test_a_candidate_that_is_better_everywhere_is_never_judged_worse(base, candidate, more) -> None:
    order = ["regressed", "unchanged", "improved"]
    before = compare(base, candidate).metrics[0].verdict
    after = compare(base, [x - more for x in candidate]).metrics[0].verdict
    assert order.index(after) >= order.index(before)


@given(st.permutations(list(IDS)), columns)
def test_the_order_of_rows_and_ids_does_not_matter(order, candidate) -> None:
    shuffled = results(loss={i: candidate[i] for i in order})
    assert compare(BASE, shuffled, ids=order) == compare(BASE, candidate)


def both(loss: float, cost: float) -> Comparison:
    """Return a comparison with the given gains of the primary and the other metric."""
    return compare(
        results(loss=BASE, cost=BASE),
        results(loss=[x - loss for x in BASE], cost=[x - cost for x in BASE]),
        (LOSS, COST),
    )


@pytest.mark.parametrize(
    ("loss", "cost", "grade", "through"),
    [
        (1.0, 0.0, "strong", True),
        (1.0, 1.0, "strong", True),
        (2.0, -1.0, "promising", True),
        (1.0, -2.0, "mixed", True),
        (0.0, 1.0, "mixed", True),
        (0.0, 0.0, "weak", False),
        (0.0, -1.0, "weak", False),
        (-1.0, 0.0, "weak", False),
        (-1.0, 9.0, "mixed", False),
    ],
)
def test_the_gate_decides_by_the_grades_of_the_metrics(loss, cost, grade, through) -> None:
    found = both(loss, cost)
    assert found.recommendation.grade == grade
    assert passes(found) == through


def test_a_weight_scales_the_effect_of_a_metric() -> None:
    light = MetricConfig(name="cost", direction="minimize", weight=0.1)
    heavy = MetricConfig(name="cost", direction="minimize", weight=10)
    base = results(loss=BASE, cost=BASE)
    candidate = results(loss=[x - 1 for x in BASE], cost=[x + 1 for x in BASE])
    lightly = compare(base, candidate, (LOSS, light)).recommendation
    heavily = compare(base, candidate, (LOSS, heavy)).recommendation
    assert (lightly.grade, heavily.grade) == ("promising", "mixed")
    assert lightly.balance is not None
    assert heavily.balance is not None
    assert lightly.balance > 0 > heavily.balance
    assert lightly.score == heavily.score > 0, "the score is the primary metric's"


def test_an_evaluation_that_failed_or_was_not_scored_does_not_pass() -> None:
    assert promotion.decide_gate(None, None).reasons == ["incomplete_rows"]
    failed = promotion.decide_gate(recommendation(5.0), EvalError("tests_failed", ""))
    assert (failed.passed, failed.reasons) == (False, ["tests_failed"])
    assert not promotion.decide_gate(recommendation(5.0, rows=7), None).passed
    assert not promotion.decide_gate(
        recommendation(5.0, reasons=["primary_metric_regressed"]), None
    ).passed
    refused = scoring.rejection(["protected_path_changed"], 8)
    assert not promotion.decide_gate(refused, None).passed


def heldout(gain: float | None, *reasons: str, rows: int = 8) -> Recommendation:
    found = recommendation(0.0, reasons=reasons, rows=rows)
    return msgspec.structs.replace(found, primary_gain=gain)


@pytest.mark.parametrize(
    ("selection", "on_heldout", "held", "reasons", "shrinkage"),
    [
        (recommendation(0.2), heldout(0.1), True, [], 0.5),
        (recommendation(0.2), heldout(0.3), True, [], -0.5),
        (recommendation(0.2), heldout(0.0), False, ["heldout_not_better"], 1.0),
        (recommendation(0.2), heldout(None), False, ["heldout_not_better"], None),
        (recommendation(0.2), heldout(0.1, rows=7), False, ["incomplete_rows"], 0.5),
        (recommendation(0.2), heldout(0.1, "incomplete_baseline"), False,
         ["incomplete_baseline"], 0.5),
        (recommendation(0.2), heldout(0.1, "bad_config_id"), False, ["bad_config_id"], 0.5),
        (recommendation(0.2), heldout(0.1, "insufficient_signal"), True, [], 0.5),
        (recommendation(0.0, passes=False), heldout(0.0, "insufficient_signal"), True, [], None),
        (recommendation(0.0, passes=False), heldout(-0.1, "primary_metric_regressed"), False,
         ["primary_metric_regressed"], None),
    ],
)  # fmt: skip
def test_a_confirmation_depends_on_the_held_out_configs(
    selection, on_heldout, held, reasons, shrinkage
) -> None:
    found = promotion.confirm(selection, on_heldout, 8, 12)
    assert (found.held, found.reasons) == (held, reasons)
    assert found.shrinkage == (None if shrinkage is None else pytest.approx(shrinkage))
    assert (found.config_start, found.config_stop) == (8, 12)


MS = MetricConfig(name="cost", direction="minimize", weight=0.05)


def test_rounding_is_no_gain() -> None:
    """0.1 + 0.2 is not 0.3; a difference of 1e-16 is no evidence about the code."""
    for base in ([0.1 + 0.2] * 8, [0.0] * 8, [1e6 + 0.1] * 8, [1e-300] * 8):
        candidate = [math.nextafter(x, -math.inf) for x in base]
        found = compare(base, candidate)
        assert (found.recommendation.grade, found.recommendation.primary_gain) == ("weak", 0.0)
        assert not passes(found)
    assert passes(compare([1e-9] * 8, [0.5e-9] * 8)), "small numbers are numbers too"


def test_a_mixed_candidate_with_a_worse_primary_mean_is_not_promoted() -> None:
    noisy = [x + (3.0 if i % 2 else -2.0) for i, x in enumerate(BASE)]
    base = results(loss=BASE, cost=BASE)
    candidate = results(loss=noisy, cost=[x - 1 for x in BASE])
    found = compare(base, candidate, (LOSS, COST)).recommendation
    assert found.grade == "mixed"
    assert found.primary_gain == pytest.approx(-0.5)
    assert "primary_mean_worse" in found.reasons
    assert not promotion.decide_gate(found, None).passed
    tolerant = MetricConfig(name="loss", direction="minimize", primary=True, tolerance=0.6)
    assert passes(compare(base, candidate, (tolerant, COST))), "within the tolerance it is none"
    assert not promotion.confirm(found, found, 8, 16).held


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e3])
def test_a_weight_has_the_same_effect_in_any_unit(unit: float) -> None:
    """Slower by a factor of forty at a weight of 0.05 does not undo a better primary metric."""
    base = results(loss=BASE, cost=[unit] * 8)
    candidate = results(loss=[x * 0.9 for x in BASE], cost=[40 * unit] * 8)
    found = compare(base, candidate, (LOSS, MS)).recommendation
    assert found.score == pytest.approx(0.1)
    assert found.balance == pytest.approx((0.1 - 0.05 * 39 / 40) / 1.05)
    assert found.grade == "promising"


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
