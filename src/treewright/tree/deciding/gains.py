"""The gain of a candidate in one metric, with its interval and its verdict. Pure.

The settings of the metric choose the interval: from the differences of the configs, or from the
differences of the repeats (each the mean over all configs). A deterministic metric has none: the
same code gives the same number, so every difference counts.
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
from treewright.tree.config import MetricConfig
from treewright.tree.deciding import paired
from treewright.tree.deciding.results import Results
from treewright.tree.records.model import MetricComparison, Verdict

Round = tuple[Results, Results]
"""The results of baseline and candidate, swept at about the same time."""


def compare_metric(
    metric: MetricConfig, rounds: Sequence[Round], pairs: Sequence[int], seed: int
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


def size(values: Sequence[float]) -> float:
    """Return the mean absolute value of a metric."""
    return paired.mean([abs(value) for value in values]) if values else 0.0


def within(x: float, limit: float = sys.float_info.max) -> float:
    """Limit an overflow to the range of numbers: a diverged metric is bad, not a fault."""
    return max(-limit, min(limit, x))


def is_violated(metric: MetricConfig, rounds: Sequence[Round], pairs: Sequence[int]) -> bool:
    """Return whether the candidate breaks a constraint, in any config of any round."""
    return metric.constraint and not all(
        metric.admits(candidate.values[metric.name][i]) for _, candidate in rounds for i in pairs
    )


def _gains(before: Sequence[float], after: Sequence[float], sign: float) -> Sequence[float]:
    # Adding zero turns -0.0, which no reader understands, into 0.0.
    gains = [within(sign * (b - a)) + 0.0 for a, b in zip(before, after, strict=True)]
    return beyond_rounding(gains, before, after, size(before))


def _verdict(
    metric: MetricConfig,
    rounds: Sequence[Round],
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
