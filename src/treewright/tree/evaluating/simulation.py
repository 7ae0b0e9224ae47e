"""Simulated evaluations for a dry run, without agents, sweeps and git.

The simulated results are the parent's with a shift and noise, drawn from the idea's text and the
run's seed. A dry run therefore gives the same tree on every machine. Scoring, gate, policies,
manifest and reports are the real ones.
"""

from __future__ import annotations

import csv
import hashlib
import io
import random
from collections.abc import Sequence
from pathlib import Path

from treewright.kernel.storage import artifacts, atomic
from treewright.tree.config import MetricConfig
from treewright.tree.deciding.results import parse_results
from treewright.tree.deciding.scoring import rejection, score_results
from treewright.tree.evaluating.measuring import in_turns
from treewright.tree.evaluating.request import (
    EvalRequest,
    HeldoutOutcome,
    HeldoutRequest,
    keep_heldout,
)
from treewright.tree.records import layout, summary
from treewright.tree.records.model import EvalError, EvalOutcome

_FAILURE_RATE = 0.1
_LARGEST_SHIFT = 0.08
_NOISE = 0.01


def simulate(request: EvalRequest) -> EvalOutcome:
    """Return the simulated outcome of a request."""
    run_dir = Path(request.run_dir)
    experiment = run_dir / layout.experiment(request.eval_id)
    experiment.mkdir(parents=True, exist_ok=True)
    atomic.sweep_temporaries(experiment)
    draw = _generator(request)
    comparisons = None
    if draw.random() < _FAILURE_RATE:
        error = EvalError("tests_failed", "simulated: the test command exited with code 1")
        refused = rejection([error.code], len(request.expected_ids))
        outcome = EvalOutcome(parent_relative=refused, root_relative=refused, error=error)
    else:
        text = _results(request, draw)
        kept = artifacts.keep(
            text, run_dir, layout.results(request.eval_id), f"simulated for {request.eval_id}"
        )
        comparisons = score_results(
            text,
            request.parent_baseline.data,
            request.root_baseline.data,
            request.expected_ids,
            request.config,
            request.seed,
        )
        outcome = EvalOutcome(
            candidate_commit=request.parent_commit,
            candidate_tree=kept.sha256,
            candidate_code=kept.sha256,
            results_csv=kept,
            parent_relative=comparisons[0].recommendation,
            root_relative=comparisons[1].recommendation,
        )
    summary.write(
        experiment / layout.SUMMARY,
        outcome,
        eval_id=request.eval_id,
        parent_node_id=request.parent_node_id,
        idea_path=request.idea_path,
        parent_commit=request.parent_commit,
        parent_relative=comparisons[0] if comparisons else None,
        root_relative=comparisons[1] if comparisons else None,
    )
    return outcome


def _results(request: EvalRequest, draw: random.Random) -> bytes:
    """Return simulated results of the candidate, in turns with its parent if there are repeats."""
    names = [metric.name for metric in request.config.metrics]
    before = parse_results(request.parent_baseline.data, names).values
    shifts = _shifts(request.config.metrics, draw)
    none = [0.0] * len(shifts)

    def sweep(shifts: list[float]) -> bytes:
        text = _shifted(before, request.expected_ids, request.config.metrics, shifts, draw)
        return text.encode()

    repeats = request.config.repeats
    if repeats == 1:
        return sweep(shifts)
    return in_turns(lambda _: sweep(shifts), lambda _: sweep(none), repeats) or b""


def simulate_heldout(request: HeldoutRequest) -> HeldoutOutcome:
    """Return simulated results on held-out configs, with the same shift as in the selection."""
    draw = _generator(request)
    draw.random()
    names = [metric.name for metric in request.config.metrics]
    before = parse_results(request.parent_heldout, names).values
    config_ids = range(request.config_start, request.config_stop)
    shifts = _shifts(request.config.metrics, draw)
    text = _shifted(before, config_ids, request.config.metrics, shifts, draw)
    return HeldoutOutcome(keep_heldout(request, text.encode(), "simulated"))


def baseline_csv(config_ids: Sequence[int], metrics: Sequence[MetricConfig]) -> str:
    """Return a simulated baseline, for a dry run of a repository without one."""
    rows = [[i, "ok", *(_simulated_value(m, i) for m in metrics)] for i in config_ids]
    return _csv(rows, metrics)


def _simulated_value(metric: MetricConfig, config_id: int) -> float:
    """Return a value between the bounds of a metric."""
    usual = 1.0 + 0.1 * (config_id % 7)
    if metric.min is not None and metric.max is not None:
        return metric.min + (metric.max - metric.min) * usual / 4
    if metric.min is not None:
        return metric.min + usual
    return usual if metric.max is None else metric.max - usual


def _generator(request: EvalRequest | HeldoutRequest) -> random.Random:
    key = b"%d:%s:" % (request.seed, request.parent_node_id.encode()) + request.idea
    return random.Random(hashlib.sha256(key).digest())  # noqa: S311


def _shifts(metrics: Sequence[MetricConfig], draw: random.Random) -> list[float]:
    """Return the shift of each metric; constraints do not shift."""
    drawn = [draw.uniform(-_LARGEST_SHIFT, _LARGEST_SHIFT) for _ in metrics]
    return [0.0 if m.constraint else shift for m, shift in zip(metrics, drawn, strict=True)]


def _shifted(
    before: dict[str, dict[int, float]],
    config_ids: Sequence[int],
    metrics: Sequence[MetricConfig],
    shifts: Sequence[float],
    draw: random.Random,
) -> str:
    rows = []
    for i in config_ids:
        values = [
            _bounded(m, before[m.name][i] * (1 + shift + _noise(m, draw)))
            for m, shift in zip(metrics, shifts, strict=True)
        ]
        rows.append([i, "ok", *values])
    return _csv(rows, metrics)


def _noise(metric: MetricConfig, draw: random.Random) -> float:
    noise = draw.uniform(-_NOISE, _NOISE)
    return 0.0 if metric.deterministic else noise


def _bounded(metric: MetricConfig, value: float) -> float:
    """Return a value rounded and clipped to the bounds of a metric."""
    value = round(value, 9)
    value = value if metric.min is None else max(metric.min, value)
    return value if metric.max is None else min(metric.max, value)


def _csv(rows: list[list[object]], metrics: Sequence[MetricConfig]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["config_id", "status", *(metric.name for metric in metrics)])
    writer.writerows(rows)
    return text.getvalue()
