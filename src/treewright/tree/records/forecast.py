"""A forecast of the rest of a run: ranges of evaluations, hours, tokens and cost.

The forecast is based on finished evaluations of the run, or of an earlier run. The number of
evaluations lies between those in the queue and those that the settings allow; the other ranges are
80 % prediction intervals for these numbers. An unknown price makes the cost unknown, not 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.clock import seconds_between
from treewright.kernel.errors import TreewrightError
from treewright.kernel.stats import student_quantile
from treewright.kernel.text.numbers import seconds
from treewright.tree.records import store
from treewright.tree.records.description import most_evaluations
from treewright.tree.records.model import Manifest

_FEWEST = 2
_QUANTILE = 0.9
_MOST_SAMPLES = 1000

Range = tuple[float, float]


class Forecast(msgspec.Struct, frozen=True):
    """A forecast based on `based_on` evaluations of `run`; `cost_usd` is None without prices."""

    evaluations: tuple[int, int]
    hours: Range
    tokens: Range
    cost_usd: Range | None
    based_on: int
    run: str


def forecast(manifest: Manifest, workers: int, runs: Path | None = None) -> Forecast | None:
    """Return a forecast, or None if the run is over or no evaluation has finished.

    Args:
        manifest: The run.
        workers: Number of evaluations at once.
        runs: The directory of earlier runs, which are used if this run has too few evaluations.
    """
    if manifest.stop_reason is not None or manifest.dry_run:
        return None
    source = manifest
    if len(_ended(manifest)) < _FEWEST:
        found = _earlier(manifest, runs) if runs is not None else None
        if found is None:
            return None
        source = found
    ended = _ended(source)
    left = _left(manifest)
    took = [seconds_between(e.started_at, e.finished_at) or 0.0 for e in ended]
    at_once = max(1, min(workers, left[1] or 1))
    low, high = _total(left, took)
    is_priced = not any(e.usage.unpriced_tokens for e in ended)
    return Forecast(
        evaluations=left,
        hours=(low / at_once / 3600, high / at_once / 3600),
        tokens=_total(left, [float(e.usage.tokens) for e in ended]),
        cost_usd=_total(left, [e.usage.cost_usd for e in ended]) if is_priced else None,
        based_on=len(ended),
        run=source.tree_run_id,
    )


def describe(found: Forecast) -> str:
    """Return one line about a forecast, without tokens and cost if no model was asked."""
    low, high = (seconds(3600 * hours) if hours else "0" for hours in found.hours)
    parts = [
        f"{found.evaluations[0]} to {found.evaluations[1]} more evaluations",
        f"{low} to {high}",
    ]
    if found.tokens[1]:
        parts.append(f"{found.tokens[0]:.0f} to {found.tokens[1]:.0f} tokens")
    if found.cost_usd is None:
        parts.append("cost unknown: a price is not known")
    elif found.cost_usd[1]:
        parts.append(f"cost {found.cost_usd[0]:.2f} to {found.cost_usd[1]:.2f} USD")
    return f"forecast: {', '.join(parts)} (from {found.based_on} of run {found.run})"


def _ended(manifest: Manifest) -> list[Any]:
    ended = [e for e in manifest.evaluations.values() if e.finished_at is not None]
    return ended[-_MOST_SAMPLES:]


def _left(manifest: Manifest) -> tuple[int, int]:
    """Return the number of open evaluations, and the most that may still be made."""
    is_open = (e.finished_at is None for e in manifest.evaluations.values())
    certain = sum(is_open)
    done = len(manifest.evaluations) - certain
    return certain, max(certain, most_evaluations(manifest) - done)


def _total(counts: tuple[int, int], samples: Sequence[float]) -> Range:
    """Return the range of the sum of `counts` samples."""
    n = len(samples)
    mean = math.fsum(samples) / n
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in samples) / (n - 1))
    t = student_quantile(_QUANTILE, n - 1)

    def half(count: int) -> float:
        return t * spread * math.sqrt(count + count * count / n)

    low, high = counts
    return max(0.0, low * mean - half(low)), high * mean + half(high)


def _earlier(manifest: Manifest, runs: Path) -> Manifest | None:
    """Return the newest other run with enough finished evaluations."""
    found: Manifest | None = None
    for run_dir in sorted(runs.iterdir()) if runs.is_dir() else []:
        if run_dir.name == manifest.tree_run_id:
            continue
        try:
            other = store.load(run_dir)
        except TreewrightError:
            continue
        newer = found is None or other.created_at > found.created_at
        if newer and not other.dry_run and len(_ended(other)) >= _FEWEST:
            found = other
    return found
