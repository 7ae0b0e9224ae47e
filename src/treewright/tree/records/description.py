"""The JSON object that `treewright tree` prints, and the size of a run before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from treewright.kernel.budget import Budget
from treewright.kernel.clock import seconds_between
from treewright.kernel.errors import TreewrightError
from treewright.tree.records import store
from treewright.tree.records.model import Manifest, Node, Unset
from treewright.tree.records.steering import DEFAULT_ELITES


def best_node(manifest: Manifest) -> Node:
    """Return the node with the best score; among equal scores the oldest, so the root at 0."""
    return min(manifest.nodes.values(), key=lambda node: (-score(node), node.depth, node.node_id))


def score(node: Node) -> float:
    return node.score


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
            "score": score(best),
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


_STATUSES = ("pending", "running", "completed", "failed")


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
    for run_dir in sorted(runs.iterdir()) if runs.is_dir() else []:
        try:
            manifest = store.load(run_dir)
        except TreewrightError:
            continue
        if not manifest.dry_run:
            spans = (
                seconds_between(e.started_at, e.finished_at) for e in manifest.evaluations.values()
            )
            taken += [span for span in spans if span is not None]
    return sum(taken) / len(taken) if taken else None
