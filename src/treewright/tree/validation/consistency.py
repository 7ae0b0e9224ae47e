"""The consistency of the state: statuses, counters, frontier, budget."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from treewright.kernel.errors import TreewrightError
from treewright.tree.deciding.policy_state import exhausted_nodes
from treewright.tree.deciding.rounds import rules_of
from treewright.tree.records import layout, store
from treewright.tree.records.model import (
    UNSET,
    Evaluation,
    Manifest,
    Node,
    PolicyRecord,
    Unset,
)
from treewright.tree.records.steering import applied, banned_nodes
from treewright.tree.validation.findings import Finding, Subject

_TASK_STATE = {
    "pending": "queued",
    "running": "running",
    "completed": "completed",
    "failed": "failed",
}


def check_evaluations(subject: Subject) -> Iterator[Finding]:
    """Check that each evaluation's status, outcome and decision fit together."""
    manifest = subject.manifest
    run_named = functools.cache(functools.partial(_run_named, subject.run_dir.parent))
    for evaluation in manifest.evaluations.values():
        for message in (
            *_status_problems(evaluation, manifest),
            *_reuse_problems(evaluation, manifest, run_named),
        ):
            yield Finding("evaluation_state", evaluation.eval_id, message)
        for message in _idea_problems(evaluation, manifest):
            yield Finding("evaluation_idea", evaluation.eval_id, message)


def _status_problems(evaluation: Evaluation, manifest: Manifest) -> Iterator[str]:
    status, task = evaluation.status, evaluation.task_state
    if _TASK_STATE[status] != task:
        yield f"status is {status} but task_state is {task}"
    done = status in ("completed", "failed")
    if (evaluation.error is not None) != (status == "failed"):
        yield f"status is {status} but error is {'set' if evaluation.error else 'not set'}"
    if (evaluation.finished_at is not None) != done:
        yield f"status is {status} but finished_at is {evaluation.finished_at}"
    if evaluation.queued_at is None or ((status != "pending") and evaluation.started_at is None):
        yield f"status is {status} but a timestamp before it is missing"
    if done and evaluation.attempt < 1:
        yield f"status is {status} after {evaluation.attempt} attempts"
    yield from _decision_problems(evaluation, manifest, done)
    results = evaluation.results_csv.path if evaluation.results_csv else None
    if evaluation.candidate_results_csv_path != results:
        yield "candidate_results_csv_path is not the path of its results artifact"
    if evaluation.experiment_dir != layout.experiment(evaluation.eval_id):
        yield f"experiment_dir is {evaluation.experiment_dir}"
    summary = layout.summary(evaluation.experiment_dir) if done else None
    if evaluation.summary_path != summary:
        yield f"summary_path is {evaluation.summary_path}"


def _run_named(runs: Path, run_id: str) -> Manifest | None:
    """Return another run of the repository; None if it is missing or not readable."""
    if Path(run_id).name != run_id:
        return None
    with contextlib.suppress(TreewrightError, OSError):
        return store.load(runs / run_id)
    return None


def _reuse_problems(
    evaluation: Evaluation, manifest: Manifest, run_named: Callable[[str], Manifest | None]
) -> Iterator[str]:
    """Yield contradictions of reused results: they must have the same code and the same bytes. An
    earlier run that was removed cannot be compared; its results can."""
    source = evaluation.results_from
    if isinstance(source, Unset):
        return
    run_id, _, name = source.rpartition("/")
    if run_id:
        if not manifest.agent_config.get("sweep", {}).get("reuse_results"):
            yield f"results_from is {source}, of another run, and reuse_results is not set"
        earlier = run_named(run_id)
        if earlier is None:
            return
        manifest, source = earlier, name
    if source in manifest.nodes:
        node = manifest.nodes[source]
        tree, results = node.tree, node.artifacts.baseline
    elif source in manifest.evaluations:
        found = manifest.evaluations[source]
        tree, results = found.candidate_tree, found.results_csv
    else:
        yield f"results_from names {source}, which is not there"
        return
    own = evaluation.results_csv
    if tree != evaluation.candidate_tree:
        yield f"results_from is {source}, which has other code"
    if own is None or results is None or own.sha256 != results.sha256:
        yield f"its results are not those of {source}"


def _decision_problems(evaluation: Evaluation, manifest: Manifest, done: bool) -> Iterator[str]:
    if manifest.policy_record is not None:
        if evaluation.decision is not None and not done:
            yield f"it was decided while its status is {evaluation.status}"
        if (evaluation.decision is None) != (evaluation.place == UNSET):
            yield "a place is recorded exactly for what is decided; not so here"
        return
    decided = evaluation.depth <= manifest.current_depth
    if decided and not done:
        yield f"its depth was decided while its status is {evaluation.status}"
    if (evaluation.decision is not None) != decided:
        yield "a decision is recorded exactly for the depths that are decided; not so here"


def _idea_problems(evaluation: Evaluation, manifest: Manifest) -> Iterator[str]:
    parent = manifest.nodes[evaluation.parent_node_id]
    idea = next((idea for idea in parent.ideas if idea.path == evaluation.idea_path), None)
    if idea is None:
        yield f"{evaluation.idea_path} is not an idea of {parent.node_id}"
    elif (idea.sha256, idea.depth) != (evaluation.idea_sha256, evaluation.depth):
        yield f"{evaluation.idea_path} is recorded with another sha256 or depth at its node"
    if evaluation.idea_text_path != evaluation.idea_path:
        yield f"idea_text_path is {evaluation.idea_text_path}"


def check_rounds(subject: Subject) -> Iterator[Finding]:
    """Check depth records, frontier and the list of expanded nodes."""
    manifest = subject.manifest
    policy_record = manifest.policy_record
    if policy_record is not None:
        yield from _policy_state(manifest, policy_record)
    elif len(manifest.depths) not in (manifest.current_depth, manifest.current_depth + 1):
        message = f"{len(manifest.depths)} depths recorded, {manifest.current_depth} decided"
        yield Finding("depth_state", "run", message)
    if manifest.current_depth > manifest.max_depth:
        message = f"depth {manifest.current_depth} is beyond max_depth {manifest.max_depth}"
        yield Finding("depth_state", "run", message)
    evaluations: dict[int, list[str]] = {}
    for evaluation in manifest.evaluations.values():
        evaluations.setdefault(evaluation.depth, []).append(evaluation.eval_id)
    promoted: dict[int, list[str]] = {}
    for node in manifest.nodes.values():
        promoted.setdefault(node.depth, []).append(node.node_id)
    for record in manifest.depths:
        owner = f"depth {record.depth}"
        if record.eval_ids != evaluations.get(record.depth, []):
            yield Finding("depth_state", owner, "eval_ids are not the evaluations of this depth")
        if record.promoted != promoted.get(record.depth, []):
            yield Finding("depth_state", owner, "promoted are not the nodes of this depth")
        if policy_record is not None:
            continue
        width = rules_of(manifest, record.depth).beam_width
        if len(record.promoted) > width:
            message = f"{len(record.promoted)} promoted, the beam is {width} wide"
            yield Finding("beam_overrun", owner, message)
        if (record.finished_at is not None) != (record.depth <= manifest.current_depth):
            yield Finding("depth_state", owner, "finished_at and current_depth disagree")
    yield from _statuses(manifest)


def _policy_state(manifest: Manifest, policy_record: PolicyRecord) -> Iterator[Finding]:
    """Check the counters and the frontier of a search by policy."""
    deepest = max(node.depth for node in manifest.nodes.values())
    if manifest.current_depth != deepest:
        message = f"current_depth is {manifest.current_depth}, the deepest node is at {deepest}"
        yield Finding("depth_state", "run", message)
    tried: dict[str, int] = {}
    for evaluation in manifest.evaluations.values():
        tried[evaluation.parent_node_id] = tried.get(evaluation.parent_node_id, 0) + 1
    exhausted = {found.node_id for found in exhausted_nodes(manifest, policy_record)}
    exhausted |= banned_nodes(applied(manifest.steering))
    for node in manifest.nodes.values():
        own = tried.get(node.node_id, 0)
        if (node.tried or 0) != own:
            message = f"tried is {node.tried}, it has {own} evaluations"
            yield Finding("node_state", node.node_id, message)
        full = policy_record.branching is not None and own >= policy_record.branching
        grows = node.depth < manifest.max_depth and not full and node.node_id not in exhausted
        if grows != (node.node_id in manifest.frontier):
            message = "the frontier is not the nodes that further ideas may be tried on"
            yield Finding("frontier_state", node.node_id, message)


def _statuses(manifest: Manifest) -> Iterator[Finding]:
    if len(set(manifest.frontier)) != len(manifest.frontier):
        yield Finding("frontier_state", "run", "a node is in the frontier twice")
    frontier = set(manifest.frontier)
    expanded = [n.node_id for n in manifest.nodes.values() if n.expanded_for_depth is not None]
    if sorted(manifest.expanded) != sorted(expanded):
        yield Finding("frontier_state", "run", "`expanded` is not the list of nodes with ideas")
    for node in manifest.nodes.values():
        if manifest.policy_record is not None:
            if (node.status == "frontier") != (node.expanded_for_depth is None):
                message = f"status is {node.status}, which its expansions contradict"
                yield Finding("frontier_state", node.node_id, message)
            continue
        in_progress = node.expanded_for_depth == manifest.current_depth + 1
        waiting = node.node_id in frontier and not in_progress
        left = node.status == "frontier" and _was_left(manifest, node)
        if not left and node.status != ("frontier" if waiting else "expanded"):
            message = f"status is {node.status}, which its place in the search contradicts"
            yield Finding("frontier_state", node.node_id, message)
        elif in_progress and node.node_id not in frontier:
            message = "it was expanded for this depth but is not in the frontier"
            yield Finding("frontier_state", node.node_id, message)


def _was_left(manifest: Manifest, node: Node) -> bool:
    """Return whether a depth was decided in which this node of the frontier was not asked for
    ideas, because the budget was used up before. A depth without asked nodes names none."""
    last = max(node.depth, node.expanded_for_depth or 0)
    return any(
        last < record.depth <= manifest.current_depth
        and (not record.frontier or node.node_id in record.frontier)
        for record in manifest.depths
    )


def check_spending(subject: Subject) -> Iterator[Finding]:
    """Check that the counters are the counts and that the budget was kept."""
    manifest = subject.manifest
    spent = manifest.spent
    evaluations = manifest.evaluations.values()
    confirmations = sum(e.confirmation is not None for e in evaluations)
    limit = manifest.max_total_idea_evals
    if spent.evals != len(evaluations):
        message = f"spent.evals is {spent.evals}, there are {len(evaluations)} evaluations"
        yield Finding("spending", "run", message)
    if spent.confirmations != confirmations:
        message = f"spent.confirmations is {spent.confirmations}, there are {confirmations}"
        yield Finding("spending", "run", message)
    if limit is not None and len(evaluations) > limit:
        message = f"{len(evaluations)} evaluations, allowed are {limit}"
        yield Finding("budget_exceeded", "run", message)
    usage = [msgspec.to_builtins(e.usage) for e in evaluations]
    for field in ("prompt_tokens", "completion_tokens"):
        used = sum(item[field] for item in usage)
        if getattr(spent, field) < used:
            message = f"spent.{field} is {getattr(spent, field)}, evaluations alone used {used}"
            yield Finding("spending", "run", message)
