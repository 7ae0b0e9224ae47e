"""Documents about a tree run: its summary, and its nodes and evaluations as compact rows."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from treewright.kernel.clock import seconds_between
from treewright.tree.records import steering
from treewright.tree.records.description import best_node, most_evaluations
from treewright.tree.records.model import Evaluation, Manifest, Node, Unset, ancestors
from treewright.tree.report import reasons
from treewright.tree.run.creation import describe_policy

_MAX_CHANGES = 200
_MAX_TITLES = 2000
"""With more evaluations, the rows have the titles of nodes only; a page asks for the others."""


class NodeRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A promoted commit. Gains and scores are root-relative."""

    id: str
    depth: int
    parent: str | None = None
    score: float = 0.0
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    title: str = ""
    commit: str = ""
    source: str | None = None
    frontier: bool = False


class EvalRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """An evaluation. Times are milliseconds since 1970."""

    id: str
    parent: str
    depth: int
    status: str
    fate: str | None = None
    node: str | None = None
    score: float | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    title: str = ""
    queued: int | None = None
    started: int | None = None
    finished: int | None = None
    worker: str | None = None
    attempt: int = 0
    phases: dict[str, float] = {}
    error: str | None = None


def summary(manifest: Manifest) -> dict[str, Any]:
    """Return the summary for the home page and the head of the run's page."""
    done = sum(e.status in ("completed", "failed") for e in manifest.evaluations.values())
    most = most_evaluations(manifest)
    stopped = manifest.stop_reason is not None
    expected = len(manifest.evaluations) if stopped else max(most, len(manifest.evaluations))
    best = best_node(manifest)
    found = best.root_relative
    metrics = manifest.agent_config.get("metrics", [])
    primary = next((m for m in metrics if m.get("primary")), {})
    return {
        "run_id": manifest.tree_run_id,
        "created_at": manifest.created_at,
        "dry_run": manifest.dry_run,
        "policy": describe_policy(manifest),
        "stale_baseline": manifest.baseline_doubt,
        "progress": {
            "done": done,
            "of": expected,
            "running": sum(e.status == "running" for e in manifest.evaluations.values()),
            "failed": sum(e.status == "failed" for e in manifest.evaluations.values()),
            "depth": manifest.current_depth,
            "max_depth": manifest.max_depth,
            "nodes": len(manifest.nodes),
        },
        "best": {
            "node": best.node_id,
            "score": best.score,
            "gain": found.primary_gain if found else None,
            "low": found.primary_gain_low if found else None,
            "high": found.primary_gain_high if found else None,
            "ref": best.ref.removeprefix("refs/heads/") if best.ref else None,
        },
        "best_path": [node.node_id for node in ancestors(manifest, best)[::-1]],
        "metric": {"name": primary.get("name", ""), "direction": primary.get("direction", "")},
        "seconds_each": None if stopped else _seconds_each(manifest, done),
        "spent": manifest.spent,
        "takeovers": len(manifest.takeovers),
        "changes": _changes(manifest),
    }


def _changes(manifest: Manifest) -> list[dict[str, Any]]:
    """Return the user's changes of the run, the latest first; times are milliseconds since 1970."""
    records = [] if isinstance(manifest.steering, Unset) else manifest.steering
    return [
        {
            "at": milliseconds(record.at or record.command.requested_at),
            "asked": milliseconds(record.command.requested_at),
            "action": record.command.action,
            "by": record.command.by,
            "what": " ".join(filter(None, (steering.describe_target(record), record.idea_path))),
            "node": record.node_id or record.command.node_id,
            "words": steering.describe(record),
            "refused": record.refused is not None,
            "why": record.refused or "",
        }
        for record in records[: -_MAX_CHANGES - 1 : -1]
    ]


def describe_stop(manifest: Manifest) -> str | None:
    """Return the stop reason in words, or None."""
    if manifest.stop_reason is None:
        return None
    return reasons.describe_stop(manifest.stop_reason)


def tree(
    manifest: Manifest, version: str, changed: set[str] | None, titles: dict[str, str]
) -> dict[str, Any]:
    """Return the rows of the changed nodes and evaluations, or all rows for None."""
    few = len(manifest.evaluations) <= _MAX_TITLES
    nodes = manifest.nodes.values()
    evaluations = manifest.evaluations.values()
    if changed is not None:
        nodes = [manifest.nodes[key] for key in changed if key in manifest.nodes]
        evaluations = [manifest.evaluations[key] for key in changed if key in manifest.evaluations]
    return {
        "version": version,
        "full": changed is None,
        "nodes": [_node_row(manifest, node, titles) for node in nodes],
        "evals": [_eval_row(e, titles.get(e.idea_path, "") if few else "") for e in evaluations],
    }


def list_titled_ideas(manifest: Manifest) -> list[str]:
    """Return the paths of the ideas with a title in the rows."""
    if len(manifest.evaluations) <= _MAX_TITLES:
        return [evaluation.idea_path for evaluation in manifest.evaluations.values()]
    return [node.idea_chain[-1] for node in manifest.nodes.values() if node.idea_chain]


def _node_row(manifest: Manifest, node: Node, titles: dict[str, str]) -> NodeRow:
    found = node.root_relative
    return NodeRow(
        id=node.node_id,
        depth=node.depth,
        parent=node.parent_node_id,
        score=node.score,
        gain=found.primary_gain if found else None,
        low=found.primary_gain_low if found else None,
        high=found.primary_gain_high if found else None,
        title=titles.get(node.idea_chain[-1], "") if node.idea_chain else "the root",
        commit=node.commit[:12],
        source=node.artifacts.promoted_from_eval_id,
        frontier=node.node_id in manifest.frontier,
    )


def _eval_row(evaluation: Evaluation, title: str) -> EvalRow:
    found = evaluation.root_relative if evaluation.error is None else None
    made = evaluation.decision
    return EvalRow(
        id=evaluation.eval_id,
        parent=evaluation.parent_node_id,
        depth=evaluation.depth,
        status=evaluation.status,
        fate=made.fate if made else None,
        node=made.promoted_to_node_id if made else None,
        score=found.score if found else None,
        gain=found.primary_gain if found else None,
        low=found.primary_gain_low if found else None,
        high=found.primary_gain_high if found else None,
        title=title,
        queued=milliseconds(evaluation.queued_at),
        started=milliseconds(evaluation.started_at),
        finished=milliseconds(evaluation.finished_at),
        worker=evaluation.worker,
        attempt=evaluation.attempt,
        phases=evaluation.timings,
        error=evaluation.error.code if evaluation.error else None,
    )


def milliseconds(at: str | None) -> int | None:
    return None if at is None else round(datetime.fromisoformat(at).timestamp() * 1000)


def _seconds_each(manifest: Manifest, done: int) -> float | None:
    """Return the wall time per evaluation, over the depths so far without the pauses."""
    if not done:
        return None
    last = max(
        (e.finished_at for e in manifest.evaluations.values() if e.finished_at), default=None
    )
    if manifest.policy_record is not None:  # evaluations of several depths run at the same time
        begun = min((r.started_at for r in manifest.depths if r.started_at), default=None)
        return max(0.0, seconds_between(begun, last) or 0.0) / done
    spans = (
        seconds_between(record.started_at, record.finished_at or last)
        for record in manifest.depths
        if record.eval_ids
    )
    return sum(max(0.0, span) for span in spans if span is not None) / done


def eta_seconds(summary: dict[str, Any], running: bool) -> float | None:
    """Return the seconds until all possible evaluations are done; None if the run is paused."""
    each = summary["seconds_each"]
    if not running or each is None:
        return None
    progress = summary["progress"]
    return (progress["of"] - progress["done"]) * each
