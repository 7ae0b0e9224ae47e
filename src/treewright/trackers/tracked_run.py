"""A run as trackers get it: parameters, metrics by step, and evaluations as children.

The record is the same for every tracker and every kind of run. It is made from the run's files each
time, so a writer may be killed or called twice: existing records stay, and missing ones are added.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from treewright.kernel.clock import seconds_between
from treewright.runs.comparison import Spending, curve
from treewright.runs.proof_run import ProofRun
from treewright.runs.run_loader import Run
from treewright.runs.search_run import SearchRun
from treewright.runs.tree_run import TreeRun, payments
from treewright.tree.records.model import Evaluation, Manifest

State = Literal["running", "finished", "failed"]
Numbers = dict[str, float]


@dataclass(frozen=True, slots=True)
class Child:
    """One evaluation, goal or node. `key` is its name within the run."""

    key: str
    name: str
    state: State
    params: Mapping[str, Any]
    numbers: Numbers
    tags: Mapping[str, str]
    began: str | None = None
    ended: str | None = None


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """A run. `key` does not depend on the directory; `series` are metrics by step."""

    key: str
    name: str
    kind: str
    state: State
    params: Mapping[str, Any]
    tags: Mapping[str, str]
    series: Mapping[int, Numbers]
    children: tuple[Child, ...] = field(repr=False)
    began: str | None = None
    ended: str | None = None


def track_run(run: Run) -> TrackedRun:
    """Return the record of a run for trackers."""
    match run:
        case TreeRun():
            return _tree(run)
        case ProofRun():
            return _proof(run)
        case SearchRun():
            return _search(run)


def _tree(run: TreeRun) -> TrackedRun:
    """Track a tree run. Children are evaluations; steps are depths or, without depths, outcomes."""
    manifest = run.manifest
    children = []
    for row in run.evaluations.rows():
        if row["finished_at"] is None:
            continue
        names = ("score", "primary_gain", "parent_score", "seconds", "cost_usd", "tokens")
        tags = {name: row[name] for name in ("fate", "grade", "error", "commit", "node_id")}
        tags["reasons"] = ", ".join(row["reasons"])
        children.append(
            Child(
                row["eval_id"],
                f"{row['eval_id']} {row['idea']}",
                "failed" if row["error"] else "finished",
                {name: row[name] for name in ("idea", "idea_id", "parent_node_id", "depth")},
                {name: float(row[name]) for name in names if row[name] is not None},
                {name: text for name, text in tags.items() if text},
                row["started_at"],
                row["finished_at"],
            )
        )
    return TrackedRun(
        _key(run.kind, run.run_id, manifest.created_at),
        run.run_id,
        run.kind,
        "finished" if run.is_finished else "running",
        {
            "policy": run.summary["policy"],
            "seed": manifest.seed,
            "root_commit": manifest.root_commit,
            "ideas_per_node": manifest.ideas_per_node,
            "beam_width": manifest.beam_width,
            "max_depth": manifest.max_depth,
            "sweep_config_limit": manifest.sweep_config_limit,
            "confirm_configs": manifest.confirm_configs,
            "metrics": ", ".join(m.get("name", "") for m in manifest.agent_config["metrics"]),
        },
        {
            "stop_reason": run.stop_reason or "",
            "best_node": run.best["node_id"],
            "best_commit": run.best["commit"],
            "path": str(run.path.resolve()),
        },
        _sums(run),
        tuple(children),
        manifest.created_at,
        max((c.ended for c in children if c.ended), default=None) if run.is_finished else None,
    )


def _sums(run: TreeRun) -> dict[int, Numbers]:
    """Return the metrics after each finished step.

    The cost includes ideas and lost attempts. It is left out if a price is unknown.
    """
    manifest = run.manifest
    paid = payments(run)
    times = [one.seconds for one in paid or ()]
    sums = [0.0, *itertools.accumulate(one.cost_usd for one in paid or ())]
    found: dict[int, Numbers] = {}
    best, count, promoted, failed = 0.0, 0, 0, 0
    for step, ended, evaluations in _steps(manifest):
        decisions = [one.decision for one in evaluations if one.decision is not None]
        names = [d.promoted_to_node_id for d in decisions if d.promoted_to_node_id is not None]
        best = max([best, *(manifest.nodes[name].score for name in names)])
        count += len(evaluations)
        promoted += len(names)
        failed += sum(one.error is not None for one in evaluations)
        found[step] = {
            "best_score": best,
            "evaluations": float(count),
            "promoted": float(promoted),
            "failed": float(failed),
        }
        if paid is not None:
            found[step]["cost_usd"] = sums[bisect.bisect_right(times, ended)]
    return found


def _steps(manifest: Manifest) -> Iterator[tuple[int, float, list[Evaluation]]]:
    """Yield each step with its end in seconds and its evaluations.

    With beam search, the steps are finished depths, because trackers cannot change a step later.
    With other policies any depth may get further evaluations, so the steps are outcomes in order.
    """
    if manifest.policy_record is not None:
        places = [(e.place, e) for e in manifest.evaluations.values() if isinstance(e.place, int)]
        ended = 0.0
        for place, one in sorted(places, key=lambda step: step[0]):
            ended = max(ended, _seconds(manifest, one.finished_at))
            yield place, ended, [one]
        return
    for record in sorted(manifest.depths, key=lambda record: record.depth):
        if record.finished_at is None:
            return
        evaluations = [manifest.evaluations[name] for name in record.eval_ids]
        yield record.depth, _seconds(manifest, record.finished_at), evaluations


def _seconds(manifest: Manifest, at: str | None) -> float:
    return seconds_between(manifest.created_at, at) or 0.0


def _proof(run: ProofRun) -> TrackedRun:
    """Track a proof run. Children and steps are the goals in order."""
    children, series = [], {}
    proved, simulations, seconds = 0, 0, 0.0
    for goal, row in zip(run.facts.goals, run.goals.rows(), strict=True):
        verdict = goal.verdict
        if verdict is None:
            break
        proved += row["status"] == "proved"
        simulations += row["simulations"]
        seconds += row["seconds"]
        series[goal.number] = {
            "proved": float(proved),
            "simulations": float(simulations),
            "seconds": seconds,
        }
        numbers = ("simulations", "nodes", "attempts", "seconds", "lean_seconds")
        children.append(
            Child(
                str(goal.number),
                goal.name,
                "finished",
                {"statement": row["statement"]},
                {name: float(row[name]) for name in numbers}
                | {"proved": float(row["status"] == "proved")},
                {"status": row["status"], "stop": row["stop"] or "", "proof": row["proof"]},
                goal.opened.at if goal.opened else None,
                verdict.at,
            )
        )
    record = run.facts.record
    return TrackedRun(
        _key(run.kind, run.run_id, record.created_at),
        run.run_id,
        run.kind,
        "finished" if run.is_finished else "running",
        {
            "searcher": record.settings.searcher,
            "simulations": record.settings.simulations,
            "seed": record.settings.seed,
            "lean": record.lean.version,
        },
        {"proved": str(run.proved), "path": str(run.path.resolve())},
        series,
        tuple(children),
        record.created_at,
        children[-1].ended if children and run.is_finished else None,
    )


def _search(run: SearchRun) -> TrackedRun:
    """Track a search. Children are nodes; steps are outcomes in order."""
    rows = {row["number"]: row for row in run.nodes.rows()}
    settings = run.history.settings
    children: list[Child] = []
    events: list[Spending] = []
    for count, (number, at) in enumerate(run.outcomes(), 1):
        row = rows[number]
        score = row["score"]
        events.append(Spending(count, None, score))
        children.append(
            Child(
                str(number),
                f"node {number}",
                "failed" if row["status"] == "failed" else "finished",
                {"parent": row["parent"], "depth": row["depth"], "action": row["action"]},
                {"score": score} if score is not None else {},
                {"reason": row["reason"]} if row["reason"] else {},
                ended=at,
            )
        )
    higher = settings.direction == "maximize"
    points = curve(events, higher=higher, start=run.history.root.score)
    series = {point.evaluations: {"best_score": point.best} for point in points}
    return TrackedRun(
        _key(run.kind, run.run_id, run.began),
        run.run_id,
        run.kind,
        "finished" if run.is_finished else "running",
        {"policy": settings.policy, "seed": settings.seed, "direction": settings.direction},
        {"path": str(run.path.resolve())},
        series,
        tuple(children),
        run.began,
        children[-1].ended if children and run.is_finished else None,
    )


def _key(kind: str, run_id: str, created_at: str) -> str:
    return hashlib.sha256(f"{kind}\n{run_id}\n{created_at}".encode()).hexdigest()[:32]
