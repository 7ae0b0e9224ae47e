"""Every gate, rank, promotion, frontier and stop reason decided again.

Takes the recomputed evaluations, not the recorded ones: what comes out rests on the
CSV files, the commits' trees and the errors alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from treewright.kernel.budget import Budget, Spending
from treewright.tree.deciding import beam
from treewright.tree.records.model import Decision, DepthRecord, Evaluation, Manifest, StopReason
from treewright.tree.running.creation import ROOT_NODE
from treewright.tree.validation.findings import Finding


def decide_again(manifest: Manifest, evaluations: dict[str, Evaluation]) -> Iterator[Finding]:
    """Walks the search from the root, depth by depth, and compares."""
    frontier, count, queued = [ROOT_NODE], 1, 0
    stop: StopReason | None = None
    for record in manifest.depths:
        owner = f"depth {record.depth}"
        if stop is not None:
            yield Finding("stop_reason_differs", owner, f"the search should have stopped: {stop}")
        yield from _frontier(record, frontier)
        yield from _queue(manifest, record, queued)
        queued += len(record.eval_ids)
        if record.depth > manifest.current_depth:
            stop = "no_new_ideas" if _found_no_ideas(manifest, record) else None
            break
        of_depth = [evaluations[eval_id] for eval_id in record.eval_ids]
        selection = _select(manifest, record, of_depth)
        if selection.to_confirm:
            message = f"{selection.to_confirm[0]} had to be confirmed before the depth was decided"
            yield Finding("confirmation_missing", owner, message)
            return
        decisions, new_nodes = _with_node_ids(selection, count)
        yield from compare_decisions(of_depth, decisions)
        yield from _needless(of_depth, decisions)
        count += len(new_nodes)
        if new_nodes or manifest.stop_on_empty_frontier:
            frontier = new_nodes
        stop = _stop_reason(manifest, record.depth, queued, bool(new_nodes))
    if manifest.frontier != frontier:
        message = f"it is {manifest.frontier}, the decisions give {frontier}"
        yield Finding("frontier_differs", "run", message)
    if manifest.stop_reason != stop:
        message = f"it is {manifest.stop_reason}, the decisions give {stop}"
        yield Finding("stop_reason_differs", "run", message)


def _frontier(record: DepthRecord, frontier: list[str]) -> Iterator[Finding]:
    if record.frontier and record.frontier != frontier:
        message = f"expanded {record.frontier}, the decisions before it give {frontier}"
        yield Finding("frontier_differs", f"depth {record.depth}", message)


def _queue(manifest: Manifest, record: DepthRecord, queued: int) -> Iterator[Finding]:
    """Which ideas were evaluated under which id, as far as the budget went."""
    tasks = [
        (node_id, idea.path)
        for node_id in sorted(record.frontier)
        for idea in manifest.nodes[node_id].ideas
        if idea.depth == record.depth
    ]
    allowed = Budget(manifest.max_total_idea_evals).allow(len(tasks), Spending(evals=queued))
    evaluated = [manifest.evaluations[eval_id] for eval_id in record.eval_ids]
    unqueued = not evaluated and record.depth > manifest.current_depth
    if not unqueued and [(e.parent_node_id, e.idea_path) for e in evaluated] != tasks[:allowed]:
        message = "its evaluations are not the chosen ideas, in order, within the budget"
        yield Finding("queue_differs", f"depth {record.depth}", message)


def _found_no_ideas(manifest: Manifest, record: DepthRecord) -> bool:
    """The frontier was expanded, gave nothing, and the run says that it ended there."""
    nodes = [manifest.nodes[node_id] for node_id in record.frontier]
    expanded = all(node.expanded_for_depth == record.depth for node in nodes)
    empty = not any(idea.depth == record.depth for node in nodes for idea in node.ideas)
    return expanded and empty and manifest.stop_reason is not None


def _select(
    manifest: Manifest, record: DepthRecord, evaluations: list[Evaluation]
) -> beam.Selection:
    known = {node.tree for node in manifest.nodes.values() if node.depth < record.depth}
    confirmations = None
    if manifest.confirm_configs:
        confirmations = {
            e.eval_id: e.confirmation for e in evaluations if e.confirmation is not None
        }
    return beam.select(evaluations, manifest.beam_width, known, confirmations)


def _with_node_ids(selection: beam.Selection, count: int) -> tuple[dict[str, Decision], list[str]]:
    decisions = dict(selection.decisions)
    nodes = [f"n{count + place:04d}" for place in range(len(selection.promoted))]
    for eval_id, node_id in zip(selection.promoted, nodes, strict=True):
        decisions[eval_id] = msgspec.structs.replace(
            decisions[eval_id], promoted_to_node_id=node_id
        )
    return decisions, nodes


def compare_decisions(
    evaluations: list[Evaluation], decisions: dict[str, Decision]
) -> Iterator[Finding]:
    """The recorded ones with those made again."""
    for evaluation in evaluations:
        recorded, again = evaluation.decision, decisions[evaluation.eval_id]
        if recorded is None or recorded == again:
            continue
        name = evaluation.eval_id
        if recorded.gate != again.gate:
            message = f"the gate said {_gate(recorded)}, from the CSV files it is {_gate(again)}"
            yield Finding("gate_differs", name, message)
        if recorded.rank != again.rank:
            message = f"its rank is {recorded.rank}, from the CSV files it is {again.rank}"
            yield Finding("rank_differs", name, message)
        if recorded.fate != again.fate:
            message = f"it was {recorded.fate}, from the CSV files it is {again.fate}"
            yield Finding("fate_differs", name, message)
        if recorded.promoted_to_node_id != again.promoted_to_node_id:
            message = (
                f"it was promoted to {recorded.promoted_to_node_id}, the decision gives "
                f"{again.promoted_to_node_id}"
            )
            yield Finding("promotion_differs", name, message)


def _needless(evaluations: list[Evaluation], decisions: dict[str, Decision]) -> Iterator[Finding]:
    for evaluation in evaluations:
        needless = decisions[evaluation.eval_id].fate not in ("promoted", "not_confirmed")
        if evaluation.confirmation is not None and needless:
            message = "it was confirmed, which its rank did not ask for"
            yield Finding("confirmation_needless", evaluation.eval_id, message)


def _gate(decision: Decision) -> str:
    said = "pass" if decision.gate.passed else "fail"
    return f"{said} ({', '.join(decision.gate.reasons)})"


def _stop_reason(
    manifest: Manifest, depth: int, evaluations: int, promoted: bool
) -> StopReason | None:
    """Written out again on purpose: a check that calls what it checks finds nothing."""
    if manifest.max_total_idea_evals is not None and evaluations >= manifest.max_total_idea_evals:
        return "max_total_idea_evals"
    if not promoted and manifest.stop_on_empty_frontier:
        return "empty_frontier"
    if depth >= manifest.max_depth:
        return "max_depth_reached"
    return None
