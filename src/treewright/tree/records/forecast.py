"""What the rest of a run may take: evaluations, hours, tokens and cost, each as a range.

From the evaluations that have ended, of this run or of an earlier one. The range of the evaluations
is from those that are certain to those that the settings allow; the others are 80 % prediction
intervals on top. A price that is not known makes the cost unknown, not 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.clock import seconds_between
from treewright.kernel.errors import TreewrightError
from treewright.kernel.stats.student import student_quantile
from treewright.kernel.text.numbers import seconds
from treewright.tree.records import store
from treewright.tree.records.description import most_evaluations
from treewright.tree.records.model import Manifest

_FEWEST = 2
_QUANTILE = 0.9
_MOST_SAMPLES = 1000

Range = tuple[float, float]


class Forecast(msgspec.Struct, frozen=True):
    """`cost_usd` is None where a price is unknown; `based_on` evaluations of `run`."""

    evaluations: tuple[int, int]
    hours: Range
    tokens: Range
    cost_usd: Range | None
    based_on: int
    run: str


def forecast(manifest: Manifest, workers: int, runs: Path | None = None) -> Forecast | None:
    """None if the run is over, or nothing is known to tell from. `runs` are where earlier runs
    of the repository are looked for."""
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


def words(found: Forecast) -> str:
    """A line for people; without tokens and cost where no model was asked."""
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
    """Evaluations that are queued and open, and all that may come."""
    is_open = (e.finished_at is None for e in manifest.evaluations.values())
    certain = sum(is_open)
    done = len(manifest.evaluations) - certain
    return certain, max(certain, most_evaluations(manifest) - done)


def _total(counts: tuple[int, int], samples: Sequence[float]) -> Range:
    """From the least of the fewer to the most of the many."""
    n = len(samples)
    mean = math.fsum(samples) / n
    spread = math.sqrt(math.fsum((x - mean) ** 2 for x in samples) / (n - 1))
    t = student_quantile(_QUANTILE, n - 1)

    def half(count: int) -> float:
        return t * spread * math.sqrt(count + count * count / n)

    low, high = counts
    return max(0.0, low * mean - half(low)), high * mean + half(high)


def _earlier(manifest: Manifest, runs: Path) -> Manifest | None:
    """The newest other run with something to tell."""
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
