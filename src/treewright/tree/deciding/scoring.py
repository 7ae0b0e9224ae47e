"""The comparison of a candidate's results with a baseline's: paired, complete, finite, with noise.

A pure function from two sets of results to a recommendation. docs/scoring.md has the rules; in
short: a metric improved (or regressed) if the interval of its mean gain (`gains`) lies on one side
of zero and the mean is beyond the tolerance. Any row that is missing, doubled or not a finite
number blocks promotion. So does a broken constraint; constraints are not ranked.

The score is the primary metric's relative gain. The weights only decide whether losses of other
metrics outweigh it, in shares that no unit changes. A primary mean that got worse is reported even
if the change is not significant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from treewright.kernel.stats import same_measurement
from treewright.tree.config import MetricConfig
from treewright.tree.deciding import gains
from treewright.tree.deciding.gains import Round
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
PRIMARY_UNCHANGED = "primary_metric_unchanged"
OF_METRICS = frozenset(
    {
        PRIMARY_IMPROVED,
        PRIMARY_REGRESSED,
        PRIMARY_MEAN_WORSE,
        SECONDARY_IMPROVED,
        SECONDARY_REGRESSED,
        INSUFFICIENT_SIGNAL,
        PRIMARY_UNCHANGED,
    }
)
"""Reasons that come from measured values. Every other reason says that the values are not valid."""

INCOMPLETE_ROWS = "incomplete_rows"
INCOMPLETE_BASELINE = "incomplete_baseline"
CONSTRAINT_VIOLATED = "constraint_violated"
NOT_DETERMINISTIC = "not_deterministic"

_LARGEST_PART = 1e300
_SHOULD_EXPLORE: frozenset[Grade] = frozenset({"strong", "promising"})


def compare(
    baseline: Results,
    candidate: Results,
    expected_ids: Sequence[int],
    metrics: Sequence[MetricConfig],
    seed: int,
    again: Sequence[Round] = (),
) -> Comparison:
    """Compare the results over exactly the expected configs.

    `seed` starts the bootstrap; `again` holds the repeats after the first.
    """
    expected = sorted(expected_ids)
    rounds: list[Round] = [(baseline, candidate), *again]
    used = [i for i in expected if all(i in after.sound_ids for _, after in rounds)]
    pairs = [i for i in used if all(i in before.sound_ids for before, _ in rounds)]
    all_compared = [gains.compare_metric(m, rounds, pairs, seed) for m in metrics]
    blockers = _blockers(rounds, expected, pairs, metrics)
    compared = [c for c, m in zip(all_compared, metrics, strict=True) if not m.constraint]
    metrics = [metric for metric in metrics if not metric.constraint]
    score = _score([m for m in compared if m.primary], [m for m in metrics if m.primary])
    balance = _balance(compared, metrics, _sizes(metrics, rounds, pairs))
    grade, reasons = _grade(compared, metrics, balance)
    reasons += _worse_mean(compared, metrics)
    if blockers:
        # The remaining rows are not a valid reason for anything.
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
        metrics=all_compared,
        problems=_examples(rounds),
    )


def rejection(reasons: list[str], rows_expected: int) -> Recommendation:
    """Return the recommendation for a candidate that was never measured."""
    return Recommendation(
        should_explore=False,
        grade="weak",
        score=0.0,
        reasons=reasons,
        rows_used=0,
        rows_expected=rows_expected,
    )


def _blockers(
    rounds: Sequence[Round],
    expected: list[int],
    pairs: list[int],
    metrics: Sequence[MetricConfig],
) -> list[str]:
    """Return the reasons as stable codes, each once, in a fixed order."""
    found: set[str] = {code for _, candidate in rounds for code in candidate.problems.counts}
    if any(i not in candidate.sound_ids for _, candidate in rounds for i in expected):
        found.add(INCOMPLETE_ROWS)
    if any(i not in baseline.sound_ids for baseline, _ in rounds for i in expected):
        found.add(INCOMPLETE_BASELINE)
    if any(gains.is_violated(metric, rounds, pairs) for metric in metrics):
        found.add(CONSTRAINT_VIOLATED)
    if any(metric.deterministic and _differs(metric, rounds, pairs) for metric in metrics):
        found.add(NOT_DETERMINISTIC)
    return sorted(found)


def _differs(metric: MetricConfig, rounds: Sequence[Round], pairs: list[int]) -> bool:
    """Return whether the repeats of a candidate give different numbers."""
    first = rounds[0][1].values[metric.name]
    return not all(
        same_measurement(first[i], candidate.values[metric.name][i])
        for _, candidate in rounds[1:]
        for i in pairs
    )


def _examples(rounds: Sequence[Round]) -> list[str]:
    """Return the problems of all repeats, each once."""
    return list(dict.fromkeys(text for _, found in rounds for text in found.problems.examples))


def _score(compared: Sequence[MetricComparison], metrics: Sequence[MetricConfig]) -> float:
    """Return the weighted mean of relative gains: 0.05 is five per cent better than the baseline.
    The weight of a single metric has no effect."""
    total_weight = math.fsum(metric.weight for metric in metrics)
    if not total_weight:
        return 0.0
    parts = []
    for metric, result in zip(metrics, compared, strict=True):
        if result.gain is None or result.baseline_mean is None:
            continue
        scale = abs(result.baseline_mean) or 1.0
        relative = gains.within(result.gain / scale)
        parts.append(gains.within(metric.weight * relative, _LARGEST_PART))
    score = math.fsum(parts) / total_weight
    return score if math.isfinite(score) else 0.0


def _sizes(
    metrics: Sequence[MetricConfig], rounds: Sequence[Round], pairs: list[int]
) -> list[float]:
    return [
        max(
            gains.size([side.values[m.name][i] for side in sides for i in pairs])
            for sides in zip(*rounds, strict=True)
        )
        for m in metrics
    ]


def _balance(
    compared: Sequence[MetricComparison], metrics: Sequence[MetricConfig], sizes: Sequence[float]
) -> float:
    """Return the weighted mean of all gains, each as a share of the larger of its two values. It
    lies between -1 and 1 in any unit, so a weight is the worth of one metric against another."""
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
    """Return the reason of a primary mean that is worse beyond its tolerance, if its verdict does
    not say so already."""
    for metric, result in zip(metrics, compared, strict=True):
        if metric.primary and result.verdict != "regressed" and result.gain is not None:
            return [PRIMARY_MEAN_WORSE] if result.gain < -metric.tolerance else []
    return []


def _grade(
    compared: Sequence[MetricComparison], metrics: Sequence[MetricConfig], balance: float
) -> tuple[Grade, list[str]]:
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
        exact = next(metric.deterministic for metric in metrics if metric.primary)
        reasons.append(PRIMARY_UNCHANGED if exact else INSUFFICIENT_SIGNAL)
    if some_better:
        reasons.append(SECONDARY_IMPROVED)
    if some_worse:
        reasons.append(SECONDARY_REGRESSED)
    if primary.verdict == "improved":
        if not some_worse:
            return "strong", reasons
        return ("promising" if balance > 0 else "mixed"), reasons
    return ("mixed" if some_better else "weak"), reasons
