"""Comparing a candidate's results with a baseline's: paired, complete, finite, with noise.

A pure function from two sets of results to a recommendation. The rules are written
out in docs/scoring.md; in short: a metric improved (or regressed) if the interval of
its paired mean gain lies on one side of zero and the mean is beyond the tolerance,
and anything missing, doubled or not a finite number blocks promotion.

A run keeps the rule it was started with (`scoring_rule` of its manifest), so that what
an earlier version decided can still be checked:

1. The score is the weighted mean of all relative gains.
2. The score is the primary metric's relative gain; the weights only decide whether other
   metrics' losses outweigh it, in shares that no unit changes. Differences that rounding
   explains are none. A mean that got worse is said, also where it is not significant.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from treewright.tree.config import MetricConfig
from treewright.tree.deciding import paired
from treewright.tree.deciding.results import Results
from treewright.tree.records.model import (
    Comparison,
    Grade,
    MetricComparison,
    Recommendation,
)

PRIMARY_IMPROVED = "primary_metric_improved"
PRIMARY_REGRESSED = "primary_metric_regressed"
SECONDARY_IMPROVED = "secondary_metric_improved"
SECONDARY_REGRESSED = "secondary_metric_regressed"
PRIMARY_MEAN_WORSE = "primary_mean_worse"
INSUFFICIENT_SIGNAL = "insufficient_signal"
OF_METRICS = frozenset(
    {
        PRIMARY_IMPROVED,
        PRIMARY_REGRESSED,
        PRIMARY_MEAN_WORSE,
        SECONDARY_IMPROVED,
        SECONDARY_REGRESSED,
        INSUFFICIENT_SIGNAL,
    }
)
"""What measured values say. Every other reason says that they cannot be trusted."""

INCOMPLETE_ROWS = "incomplete_rows"
INCOMPLETE_BASELINE = "incomplete_baseline"

RULE = 2
"""The scoring rule of new runs."""
_PRIMARY_ONLY = 2
_LARGEST_PART = 1e300
_ROUNDING = 1e-9
"""Two numbers that agree to this share of themselves are the same measurement."""
_RESOLUTION = 1e-12
"""So are two that differ by less than this share of what the metric usually is."""
_SHOULD_EXPLORE: frozenset[Grade] = frozenset({"strong", "promising"})


def compare(
    baseline: Results,
    candidate: Results,
    expected_ids: Sequence[int],
    metrics: Sequence[MetricConfig],
    seed: int,
    rule: int = RULE,
) -> Comparison:
    """Compares over exactly the expected configs; `seed` feeds the bootstrap."""
    expected = sorted(expected_ids)
    used = [i for i in expected if i in candidate.sound_ids]
    pairs = [i for i in used if i in baseline.sound_ids]
    compared = [
        _compare_metric(metric, baseline, candidate, pairs, seed, rule) for metric in metrics
    ]
    blockers = _blockers(baseline, candidate, expected)
    if rule < _PRIMARY_ONLY:
        score, balance = _score(compared, metrics), None
        grade, reasons = _grade(compared, score)
    else:
        score = _score([m for m in compared if m.primary], [m for m in metrics if m.primary])
        balance = _balance(compared, metrics, _sizes(metrics, baseline, candidate, pairs))
        grade, reasons = _grade(compared, balance)
        reasons += _worse_mean(compared, metrics)
    if blockers:
        # What the remaining rows say is no reason for anything.
        grade, reasons = "weak", blockers
    primary = next(metric for metric in compared if metric.primary)
    return Comparison(
        recommendation=Recommendation(
            should_explore=grade in _SHOULD_EXPLORE,
            grade=grade,
            score=score,
            reasons=reasons,
            rows_used=len(used),
            rows_expected=len(expected),
            primary_gain=primary.gain,
            primary_gain_low=primary.gain_low,
            primary_gain_high=primary.gain_high,
            balance=balance,
        ),
        metrics=compared,
        problems=candidate.problems.examples,
    )


def rejection(reasons: list[str], rows_expected: int) -> Recommendation:
    """The recommendation for a candidate that was never measured."""
    return Recommendation(
        should_explore=False,
        grade="weak",
        score=0.0,
        reasons=reasons,
        rows_used=0,
        rows_expected=rows_expected,
    )


def _blockers(baseline: Results, candidate: Results, expected: list[int]) -> list[str]:
    """Stable codes, each once, in a fixed order."""
    found: set[str] = set(candidate.problems.counts)
    if any(i not in candidate.sound_ids for i in expected):
        found.add(INCOMPLETE_ROWS)
    if any(i not in baseline.sound_ids for i in expected):
        found.add(INCOMPLETE_BASELINE)
    return sorted(found)


def _compare_metric(
    metric: MetricConfig,
    baseline: Results,
    candidate: Results,
    pairs: list[int],
    seed: int,
    rule: int,
) -> MetricComparison:
    before = [baseline.values[metric.name][i] for i in pairs]
    after = [candidate.values[metric.name][i] for i in pairs]
    if not pairs:
        return MetricComparison(
            metric.name, metric.direction, metric.primary, 0,
            None, None, None, None, None, None, "unknown",
        )  # fmt: skip
    sign = 1.0 if metric.direction == "maximize" else -1.0
    # Adding zero turns -0.0, which no reader understands, into 0.0.
    gains = [_within(sign * (b - a)) + 0.0 for a, b in zip(before, after, strict=True)]
    if rule >= _PRIMARY_ONLY:
        gains = _beyond_rounding(gains, before, after)
    gain = paired.mean(gains)
    bounds = paired.interval(gains, seed)
    low, high = bounds if bounds is not None else (None, None)
    return MetricComparison(
        name=metric.name,
        direction=metric.direction,
        primary=metric.primary,
        pairs=len(pairs),
        baseline_mean=paired.mean(before),
        candidate_mean=paired.mean(after),
        mean_delta=sign * gain + 0.0,
        gain=gain,
        gain_low=low,
        gain_high=high,
        verdict=_verdict(gain, low, high, metric.tolerance),
    )


def _beyond_rounding(
    gains: Sequence[float], before: Sequence[float], after: Sequence[float]
) -> list[float]:
    """The gains, without those that are smaller than what numbers of that size can mean."""
    usual = _RESOLUTION * (_size(before) or 1.0)
    return [
        0.0 if abs(gain) <= max(usual, _ROUNDING * max(abs(a), abs(b))) else gain
        for gain, a, b in zip(gains, before, after, strict=True)
    ]


def _size(values: Sequence[float]) -> float:
    """How large a metric's values are on average, whatever their sign."""
    return paired.mean([abs(value) for value in values]) if values else 0.0


def _verdict(gain: float, low: float | None, high: float | None, tolerance: float):
    if low is None or high is None or not math.isfinite(gain):
        return "unknown"
    if low > 0 and gain > tolerance:
        return "improved"
    if high < 0 and gain < -tolerance:
        return "regressed"
    return "unchanged"


def _score(compared: Sequence[MetricComparison], metrics: Sequence[MetricConfig]) -> float:
    """The weighted mean of relative gains: 0.05 is five per cent better than the baseline.
    Of a single metric its weight does not matter."""
    total_weight = math.fsum(metric.weight for metric in metrics)
    if not total_weight:
        return 0.0
    parts = []
    for metric, result in zip(metrics, compared, strict=True):
        if result.gain is None or result.baseline_mean is None:
            continue
        scale = abs(result.baseline_mean) or 1.0
        parts.append(_within(metric.weight * _within(result.gain / scale), _LARGEST_PART))
    score = math.fsum(parts) / total_weight
    return score if math.isfinite(score) else 0.0


def _sizes(
    metrics: Sequence[MetricConfig], baseline: Results, candidate: Results, pairs: list[int]
) -> list[float]:
    return [
        max(_size([side.values[m.name][i] for i in pairs]) for side in (baseline, candidate))
        for m in metrics
    ]


def _balance(
    compared: Sequence[MetricComparison], metrics: Sequence[MetricConfig], sizes: Sequence[float]
) -> float:
    """The weighted mean of all gains, each as a share of the larger of its two values: from
    -1 to 1, whatever the unit, so that a weight is what one metric is worth against another."""
    total_weight = math.fsum(metric.weight for metric in metrics)
    if not total_weight:
        return 0.0
    shares = [
        metric.weight * max(-1.0, min(1.0, result.gain / size))
        for metric, result, size in zip(metrics, compared, sizes, strict=True)
        if result.gain is not None and size
    ]
    return math.fsum(shares) / total_weight


def _worse_mean(compared: Sequence[MetricComparison], metrics: Sequence[MetricConfig]) -> list[str]:
    """Said where no verdict says it: the primary metric's mean is worse beyond its tolerance."""
    for metric, result in zip(metrics, compared, strict=True):
        if metric.primary and result.verdict != "regressed" and result.gain is not None:
            return [PRIMARY_MEAN_WORSE] if result.gain < -metric.tolerance else []
    return []


def _within(x: float, limit: float = sys.float_info.max) -> float:
    """Keeps what overflowed in the range of numbers; a diverged metric is bad, not a fault."""
    return max(-limit, min(limit, x))


def _grade(compared: Sequence[MetricComparison], balance: float) -> tuple[Grade, list[str]]:
    primary = next(metric for metric in compared if metric.primary)
    others = [metric for metric in compared if not metric.primary]
    some_better = any(metric.verdict == "improved" for metric in others)
    some_worse = any(metric.verdict == "regressed" for metric in others)
    reasons = []
    if primary.verdict == "improved":
        reasons.append(PRIMARY_IMPROVED)
    elif primary.verdict == "regressed":
        reasons.append(PRIMARY_REGRESSED)
    else:
        reasons.append(INSUFFICIENT_SIGNAL)
    if some_better:
        reasons.append(SECONDARY_IMPROVED)
    if some_worse:
        reasons.append(SECONDARY_REGRESSED)
    if primary.verdict == "improved":
        if not some_worse:
            return "strong", reasons
        return ("promising" if balance > 0 else "mixed"), reasons
    return ("mixed" if some_better else "weak"), reasons
