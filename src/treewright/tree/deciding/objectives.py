"""Requirements of a metric's settings: bounds, equal values in two sweeps, decidable sweeps.

Pure. Every refusal of a run is one line that names the setting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treewright.kernel.stats import same_measurement
from treewright.tree.config import Config, MetricConfig
from treewright.tree.deciding.results import FIRST, Part, Results, parse_results


def read(
    data: bytes | None,
    metrics: Sequence[MetricConfig],
    wanted: Callable[[int], bool] = lambda _: True,
    part: Part = FIRST,
) -> Results:
    """Read the rows of a sweep; a value outside the bounds of its metric makes a row unsound."""
    results = parse_results(data, [metric.name for metric in metrics], wanted, part)
    for metric in metrics:
        if metric.constraint:
            continue
        outside = [i for i, v in results.values[metric.name].items() if not metric.admits(v)]
        for config_id in sorted(outside):
            value = results.values[metric.name][config_id]
            results.problems.add(
                "out_of_range", f"{metric.name} of config_id {config_id} is {value!r}"
            )
            results.sound_ids.discard(config_id)
            for values in results.values.values():
                values.pop(config_id, None)
    return results


def violation(results: Results, metrics: Sequence[MetricConfig]) -> str | None:
    """Return the first value that breaks a constraint, in words; None if there is none."""
    for metric in metrics:
        if metric.constraint:
            for config_id, value in sorted(results.values[metric.name].items()):
                if not metric.admits(value):
                    return f"{metric.name} of config_id {config_id} is {value!r}"
    return None


def difference(
    first: Results, second: Results, metrics: Sequence[MetricConfig]
) -> tuple[str, str] | None:
    """Return the first deterministic metric in which two sweeps of one commit differ, and where,
    in words. Differences that rounding explains do not count."""
    for metric in metrics:
        if not metric.deterministic:
            continue
        before, after = first.values[metric.name], second.values[metric.name]
        for config_id in sorted(before.keys() | after.keys()):
            a, b = before.get(config_id), after.get(config_id)
            if a is None or b is None or not same_measurement(a, b):
                return metric.name, f"{a!r} and {b!r} for config_id {config_id}"
    return None


def why_undecidable(config: Config, configs: int) -> str | None:
    """Return why no candidate can pass the gate with this many configs; None if one can."""
    primary = config.primary
    if configs > 1 or primary.deterministic or primary.repeats:
        return None
    return (
        f"one config says nothing about noise, so no candidate could ever be promoted: for the "
        f"metric {primary.name} set deterministic = true or repeats = 5, or sweep more configs"
    )


def why_unbeatable(config: Config, baseline: Results) -> str | None:
    """Return why no candidate can be better than the root: its metric is at the bound already."""
    primary = config.primary
    bound = primary.max if primary.direction == "maximize" else primary.min
    values = baseline.values[primary.name].values()
    if bound is None or any(abs(bound - value) > primary.tolerance for value in values):
        return None
    setting = "max" if primary.direction == "maximize" else "min"
    return (
        f"the root is at {setting} = {bound!r} of the metric {primary.name}, within its tolerance: "
        "nothing could be better"
    )
