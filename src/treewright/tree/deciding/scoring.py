"""The comparison of a candidate's results with a baseline's: paired, complete, finite, with noise.

A pure function from two sets of results to a recommendation. docs/scoring.md has the rules; in
short: a metric improved (or regressed) if the interval of its mean gain lies on one side of zero
and the mean is beyond the tolerance. The settings of the metric choose the interval: from the
differences of the configs, or from the differences of the repeats (each the mean over all configs).
A deterministic metric has none: the same code gives the same number, so every difference counts.
Any row that is missing, doubled or not a finite number blocks promotion. So does a broken
constraint; constraints are not ranked.

The score is the primary metric's relative gain. The weights only decide whether losses of other
metrics outweigh it, in shares that no unit changes. A primary mean that got worse is reported even
if the change is not significant.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from treewright.kernel.stats import (
    beyond_resolution,
    beyond_rounding,
    same_measurement,
    sizes_of_changes,
    student_quantile,
)
from treewright.tree.config import Config, MetricConfig
from treewright.tree.deciding import objectives, paired
from treewright.tree.deciding.results import Part, Results, Side
from treewright.tree.records.model import (
    Comparison,
    Grade,
    MetricComparison,
    Recommendation,
    Verdict,
)

SweepPair = tuple[Results, Results]
"""The results of baseline and candidate, swept at about the same time."""


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


def compare_metric(
    metric: MetricConfig, rounds: Sequence[SweepPair], pairs: Sequence[int], seed: int
) -> MetricComparison:
    """Compare one metric over the configs `pairs`, which are sound on both sides of every round."""
    if not pairs:
        return MetricComparison(
            metric.name, metric.direction, metric.primary, 0,
            None, None, None, None, None, None, "unknown",
        )  # fmt: skip
    sign = 1.0 if metric.direction == "maximize" else -1.0
    values = [tuple([side.values[metric.name][i] for i in pairs] for side in r) for r in rounds]
    gains = [_gains(before, after, sign) for before, after in values]
    by_config = gains[0] if len(gains) == 1 else [paired.mean(g) for g in zip(*gains, strict=True)]
    repeated = metric.repeats is not None and len(gains) > 1  # held-out configs are swept once
    sample = [paired.mean(g) for g in gains] if repeated else by_config
    gain = paired.mean(sample)
    if metric.deterministic:
        low, high = gain, gain
    else:
        bounds = paired.interval(sample, seed)
        low, high = bounds if bounds is not None else (None, None)
        if bounds is not None and metric.seeds and not paired.is_beyond_chance(sample, seed):
            low, high = min(bounds[0], 0.0), max(bounds[1], 0.0)
    changes = zip(gains, values, strict=True)
    changed = paired.mean([x for found, both in changes for x in sizes_of_changes(found, *both)])
    gain = beyond_resolution(gain, changed)
    low, high = (
        None if bound is None else beyond_resolution(bound, changed) for bound in (low, high)
    )
    return MetricComparison(
        name=metric.name,
        direction=metric.direction,
        primary=metric.primary,
        pairs=len(pairs),
        baseline_mean=paired.mean([x for before, _ in values for x in before]),
        candidate_mean=paired.mean([x for _, after in values for x in after]),
        mean_delta=sign * gain + 0.0,
        gain=gain,
        gain_low=low,
        gain_high=high,
        verdict=_verdict(metric, rounds, pairs, gain, low, high),
    )


def is_among(value: float, repeats: Sequence[float]) -> bool:
    """Return whether the value may be one more repeat, by a 99.9 % prediction interval."""
    centre, n = paired.mean(repeats), len(repeats)
    if n < 2:
        return same_measurement(value, centre)
    spread = math.sqrt(math.fsum((x - centre) * (x - centre) for x in repeats) / (n - 1))
    reach = student_quantile(0.9995, n - 1) * spread * math.sqrt(1 + 1 / n)
    return same_measurement(value, centre) or abs(value - centre) <= reach


def mean_size(values: Sequence[float]) -> float:
    """Return the mean absolute value of a metric."""
    return paired.mean([abs(value) for value in values]) if values else 0.0


def limited(x: float, limit: float = sys.float_info.max) -> float:
    """Limit an overflow to the range of numbers: a diverged metric is bad, not a fault."""
    return max(-limit, min(limit, x))


def is_violated(metric: MetricConfig, rounds: Sequence[SweepPair], pairs: Sequence[int]) -> bool:
    """Return whether the candidate breaks a constraint, in any config of any round."""
    return metric.constraint and not all(
        metric.admits(candidate.values[metric.name][i]) for _, candidate in rounds for i in pairs
    )


def _gains(before: Sequence[float], after: Sequence[float], sign: float) -> Sequence[float]:
    # Adding zero turns -0.0, which no reader understands, into 0.0.
    gains = [limited(sign * (b - a)) + 0.0 for a, b in zip(before, after, strict=True)]
    return beyond_rounding(gains, before, after, mean_size(before))


def _verdict(
    metric: MetricConfig,
    rounds: Sequence[SweepPair],
    pairs: Sequence[int],
    gain: float,
    low: float | None,
    high: float | None,
) -> Verdict:
    if metric.constraint:
        return "violated" if is_violated(metric, rounds, pairs) else "held"
    if low is None or high is None or not math.isfinite(gain):
        return "unknown"
    if low > 0 and gain > metric.tolerance:
        return "improved"
    if high < 0 and gain < -metric.tolerance:
        return "regressed"
    return "unchanged"


def compare(
    baseline: Results,
    candidate: Results,
    expected_ids: Sequence[int],
    metrics: Sequence[MetricConfig],
    seed: int,
    again: Sequence[SweepPair] = (),
) -> Comparison:
    """Compare the results over exactly the expected configs.

    `seed` starts the bootstrap; `again` holds the repeats after the first.
    """
    expected = sorted(expected_ids)
    rounds: list[SweepPair] = [(baseline, candidate), *again]
    used = [i for i in expected if all(i in after.sound_ids for _, after in rounds)]
    pairs = [i for i in used if all(i in before.sound_ids for before, _ in rounds)]
    all_compared = [compare_metric(m, rounds, pairs, seed) for m in metrics]
    blockers = _blockers(rounds, expected, pairs, metrics)
    compared = [c for c, m in zip(all_compared, metrics, strict=True) if not m.constraint]
    metrics = [metric for metric in metrics if not metric.constraint]
    score = _score([m for m in compared if m.primary], [m for m in metrics if m.primary])
    balance = _balance(compared, metrics, rounds, pairs)
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
        problems=list(dict.fromkeys(x for _, found in rounds for x in found.problems.examples)),
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
    rounds: Sequence[SweepPair],
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
    if any(is_violated(metric, rounds, pairs) for metric in metrics):
        found.add(CONSTRAINT_VIOLATED)
    if any(metric.deterministic and _differs(metric, rounds, pairs) for metric in metrics):
        found.add(NOT_DETERMINISTIC)
    return sorted(found)


def _differs(metric: MetricConfig, rounds: Sequence[SweepPair], pairs: list[int]) -> bool:
    """Return whether the repeats of a candidate give different numbers."""
    first = rounds[0][1].values[metric.name]
    return not all(
        same_measurement(first[i], candidate.values[metric.name][i])
        for _, candidate in rounds[1:]
        for i in pairs
    )


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
        relative = limited(result.gain / scale)
        parts.append(limited(metric.weight * relative, _LARGEST_PART))
    score = math.fsum(parts) / total_weight
    return score if math.isfinite(score) else 0.0


def _balance(
    compared: Sequence[MetricComparison],
    metrics: Sequence[MetricConfig],
    rounds: Sequence[SweepPair],
    pairs: list[int],
) -> float:
    """Return the weighted mean of all gains, each as a share of the larger of its two values. It
    lies between -1 and 1 in any unit, so a weight is the worth of one metric against another."""
    total_weight = math.fsum(metric.weight for metric in metrics)
    if not total_weight:
        return 0.0
    shares = []
    for metric, result in zip(metrics, compared, strict=True):
        size = max(
            mean_size([side.values[metric.name][i] for side in sides for i in pairs])
            for sides in zip(*rounds, strict=True)
        )
        if result.gain is not None and size:
            shares.append(metric.weight * max(-1.0, min(1.0, result.gain / size)))
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


def score_results(
    candidate: bytes | None,
    parent: bytes | None,
    root: bytes | None,
    expected_ids: list[int],
    config: Config,
    seed: int,
) -> tuple[Comparison, Comparison]:
    """Return the comparisons of a results CSV with its parent and with the root.

    The files are given as bytes, so that exactly the bytes with the recorded checksum are
    compared.
    """
    expected = set(expected_ids)
    repeats = config.repeats

    def read(data: bytes | None, side: Side = "candidate") -> list[Results]:
        return [
            objectives.read(data, config.metrics, expected.__contains__, Part(side, number))
            for number in range(1, repeats + 1)
        ]

    measured = read(candidate)
    above = read(parent) if repeats == 1 else read(candidate, "parent")
    baselines = (above, above if repeats == 1 and root == parent else read(root))
    compared = [
        compare(
            before[0],
            measured[0],
            expected_ids,
            config.metrics,
            seed,
            list(zip(before[1:], measured[1:], strict=True)),
        )
        for before in baselines
    ]
    return compared[0], compared[1]
