"""A run in figures: the JSON object that `treewright tree` prints, the size, a forecast.

A forecast gives ranges of evaluations, hours, tokens and cost. It is based on finished evaluations
of the run, or of an earlier run. The number of evaluations lies between those in the queue and
those that the settings allow; the other ranges are 80 % prediction intervals for these numbers. An
unknown price makes the cost unknown, not 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.budget import Budget
from treewright.kernel.clock import seconds_between
from treewright.kernel.errors import TreewrightError
from treewright.kernel.stats import student_quantile
from treewright.kernel.text.numbers import seconds
from treewright.tree.records import store
from treewright.tree.records.model import Manifest, Node, Unset
from treewright.tree.records.steering import DEFAULT_ELITES

_STATUSES = ("pending", "running", "completed", "failed")
_FEWEST = 2
_QUANTILE = 0.9
_MOST_SAMPLES = 1000
Range = tuple[float, float]


def best_node(manifest: Manifest) -> Node:
    """Return the node with the best score; among equal scores the oldest, so the root at 0."""
    return min(manifest.nodes.values(), key=lambda node: (-node.score, node.depth, node.node_id))


def describe(manifest: Manifest, run_dir: Path) -> dict[str, Any]:
    """Return the JSON object of a run; its fields are documented in docs/cli.md."""
    best = best_node(manifest)
    recommendation = best.root_relative
    statuses = [evaluation.status for evaluation in manifest.evaluations.values()]
    return {
        "tree_run_id": manifest.tree_run_id,
        "policy": "beam" if manifest.policy_record is None else manifest.policy_record.policy,
        "current_depth": manifest.current_depth,
        "max_depth": manifest.max_depth,
        "stop_reason": manifest.stop_reason,
        "frontier": list(manifest.frontier),
        "best": {
            "node_id": best.node_id,
            "depth": best.depth,
            "commit": best.commit,
            "ref": best.ref,
            "score": best.score,
            "primary_gain": recommendation.primary_gain if recommendation else 0.0,
            "idea_chain": best.idea_chain,
        },
        "counts": {
            "nodes": len(manifest.nodes),
            "evaluations": len(statuses),
            **{name: statuses.count(name) for name in _STATUSES},
        },
        "budget": {
            "max_total_idea_evals": manifest.max_total_idea_evals,
            "evals_left": Budget(manifest.max_total_idea_evals).evals_left(manifest.spent),
            "evals": manifest.spent.evals,
            "confirmations": manifest.spent.confirmations,
            "seconds": round(manifest.spent.seconds, 3),
            "cost_usd": manifest.spent.cost_usd,
            "prompt_tokens": manifest.spent.prompt_tokens,
            "completion_tokens": manifest.spent.completion_tokens,
            "unpriced_tokens": manifest.spent.unpriced_tokens,
        },
        "dry_run": manifest.dry_run,
        "run_dir": str(run_dir),
    }


def estimate(manifest: Manifest, runs: Path, workers: int) -> str:
    """Return one line about the size of a real run, with its duration if earlier runs are known."""
    most = most_evaluations(manifest)
    beam = manifest.beam_width * manifest.max_depth
    sweeps = (
        f" and {beam} or more held-out sweeps"
        if manifest.policy_record is None
        else " and a held-out sweep for each that passes the gate"
    )
    what = f"a real run: at most {most} evaluations" + (sweeps if manifest.confirm_configs else "")
    each = past_seconds_per_evaluation(runs)
    if each is None:
        return f"{what}; no past timings to tell how long"
    seconds = most * each / min(workers, most)
    return f"{what}, about {seconds:.0f} s at {workers} at once ({each:.1f} s each)"


def most_evaluations(manifest: Manifest) -> int:
    """Return the number of evaluations of a run in which every further frontier is full."""
    if manifest.policy_record is not None and manifest.max_total_idea_evals is not None:
        return manifest.max_total_idea_evals
    decided = manifest.current_depth
    made = sum(one.depth <= decided for one in manifest.evaluations.values())
    first = 0 if decided else manifest.ideas_per_node
    elites = DEFAULT_ELITES if isinstance(manifest.elites, Unset) else manifest.elites
    each = manifest.ideas_per_node * (manifest.beam_width + elites)
    total = made + first + each * (manifest.max_depth - max(decided, 1))
    limit = manifest.max_total_idea_evals
    return total if limit is None else min(total, limit)


def past_seconds_per_evaluation(runs: Path) -> float | None:
    """Return the mean duration of evaluations in earlier real runs, or None without any."""
    taken: list[float] = []
    for manifest in _real_runs(runs):
        spans = (
            seconds_between(e.started_at, e.finished_at) for e in manifest.evaluations.values()
        )
        taken += [span for span in spans if span is not None]
    return sum(taken) / len(taken) if taken else None


def _real_runs(runs: Path) -> Iterator[Manifest]:
    """Yield the runs of a directory that can be read, without dry runs, by name."""
    for run_dir in sorted(runs.iterdir()) if runs.is_dir() else []:
        try:
            manifest = store.load(run_dir)
        except TreewrightError:
            continue
        if not manifest.dry_run:
            yield manifest


class Forecast(msgspec.Struct, frozen=True):
    """A forecast based on `based_on` evaluations of `run`; `cost_usd` is None without prices."""

    evaluations: tuple[int, int]
    hours: Range
    tokens: Range
    cost_usd: Range | None
    based_on: int
    run: str


def make_forecast(manifest: Manifest, workers: int, runs: Path | None = None) -> Forecast | None:
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
        others = (
            run
            for run in (_real_runs(runs) if runs is not None else ())
            if run.tree_run_id != manifest.tree_run_id and len(_ended(run)) >= _FEWEST
        )
        newest = max(others, key=lambda run: run.created_at, default=None)
        if newest is None:
            return None
        source = newest
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


def describe_forecast(found: Forecast) -> str:
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
