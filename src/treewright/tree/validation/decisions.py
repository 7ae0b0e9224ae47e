"""Beam search, repeated: every gate, rank, promotion, frontier and stop reason.

It uses the recomputed evaluations, not the recorded ones, so its results depend on the CSV files,
the trees of the commits and the errors alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from treewright.kernel.budget import Budget, Spending
from treewright.tree.deciding import leftovers, rounds
from treewright.tree.deciding.promotion import KnownCode
from treewright.tree.deciding.rounds import Round, Rules
from treewright.tree.records import steering
from treewright.tree.records.model import (
    UNSET,
    Decision,
    DepthRecord,
    Evaluation,
    IdeaRecord,
    Manifest,
    StopReason,
    ancestors,
)
from treewright.tree.records.steering import (
    Steering,
    applied,
    banned_nodes,
    injected,
    is_stopped,
)
from treewright.tree.run.creation import ROOT_NODE
from treewright.tree.validation.findings import Finding


def decide_again(manifest: Manifest, evaluations: dict[str, Evaluation]) -> Iterator[Finding]:
    """Repeat the search from the root, depth by depth, and yield the differences."""
    frontier, count, queued, unlucky = [ROOT_NODE], 1, 0, 0
    stop: StopReason | None = None
    start = rounds.Round(0, frontier, frontier, 0, 0)
    if changes := rounds.changes_after(manifest, 0):
        frontier, stop = _changed(manifest, start, changes)
    for record in manifest.depths:
        rules = rounds.rules_of(manifest, record.depth)
        owner = f"depth {record.depth}"
        if stop is not None:
            yield Finding("stop_reason_differs", owner, f"the search should have stopped: {stop}")
        if record.frontier and record.frontier != frontier:
            message = f"expanded {record.frontier}, the decisions before it give {frontier}"
            yield Finding("frontier_differs", owner, message)
        yield from _queue(manifest, rules, record, frontier, queued)
        yield from _left_over(manifest, record)
        queued += len(record.eval_ids)
        if record.depth > manifest.current_depth:
            stop = "no_new_ideas" if _found_no_ideas(manifest, record) else None
            break
        of_depth = [evaluations[eval_id] for eval_id in record.eval_ids]
        selection = _select(manifest, rules, record, of_depth)
        if selection.to_confirm:
            message = f"{selection.to_confirm[0]} had to be confirmed before the depth was decided"
            yield Finding("confirmation_missing", owner, message)
            return
        new_nodes = [f"n{count + place:04d}" for place in range(len(selection.promoted))]
        decisions = dict(selection.decisions)
        for eval_id, node_id in zip(selection.promoted, new_nodes, strict=True):
            promoted = msgspec.structs.replace(decisions[eval_id], promoted_to_node_id=node_id)
            decisions[eval_id] = promoted
        yield from compare_decisions(of_depth, decisions)
        for evaluation in of_depth:
            needless = decisions[evaluation.eval_id].fate not in ("promoted", "not_confirmed")
            if evaluation.confirmation is not None and needless:
                message = "it was confirmed, which its rank did not ask for"
                yield Finding("confirmation_needless", evaluation.eval_id, message)
        count += len(new_nodes)
        unlucky = rounds.unlucky_after(manifest, unlucky, record, new_nodes, queued)
        done = rounds.Round(record.depth, frontier, new_nodes, unlucky, queued)
        before = [r for r in applied(manifest.steering) if r.depth < record.depth]
        banned = banned_nodes(before)
        frontier = rounds.next_frontier(manifest, rules, done, manifest.nodes, banned)
        stop = rounds.stop_reason(rules, done)
        if changes := rounds.changes_after(manifest, record.depth):
            frontier, stop = _changed(manifest, done, changes)
    if is_stopped(applied(manifest.steering)):
        stop = "stopped"
    elif manifest.stop_reason == "cap_reached" and stop is None and manifest.caps is not UNSET:
        stop = "cap_reached"
    if manifest.frontier != frontier:
        message = f"it is {manifest.frontier}, the decisions give {frontier}"
        yield Finding("frontier_differs", "run", message)
    if manifest.stop_reason != stop:
        message = f"it is {manifest.stop_reason}, the decisions give {stop}"
        yield Finding("stop_reason_differs", "run", message)


def _changed(
    manifest: Manifest, done: Round, changes: list[Steering]
) -> tuple[list[str], StopReason | None]:
    return rounds.after_changes(manifest, done, rounds.rules_after(manifest, changes[-1]), changes)


def _queue(
    manifest: Manifest, rules: Rules, record: DepthRecord, frontier: list[str], queued: int
) -> Iterator[Finding]:
    """Check which ideas were evaluated under which id, as far as the budget allowed. If no node
    was asked for ideas, because the user added them all, the record does not name their nodes."""
    tasks = [
        (node_id, idea.path)
        for node_id, idea in rounds.tasks(manifest, record.frontier or frontier, record.depth)
    ]
    allowed = Budget(rules.max_total_idea_evals).allow(len(tasks), Spending(evals=queued))
    evaluated = [manifest.evaluations[eval_id] for eval_id in record.eval_ids]
    unqueued = not evaluated and record.depth > manifest.current_depth
    if not unqueued and [(e.parent_node_id, e.idea_path) for e in evaluated] != tasks[:allowed]:
        message = "its evaluations are not the chosen ideas, in order, within the budget"
        yield Finding("queue_differs", f"depth {record.depth}", message)


def _left_over(manifest: Manifest, record: DepthRecord) -> Iterator[Finding]:
    """Check which leftovers were offered again. Idea texts are not read here, so a run with a
    banned pattern is not checked."""
    if steering.banned_patterns(applied(manifest.steering)):
        return
    depth, by_hand = record.depth, injected(applied(manifest.steering))
    tried = {e.idea_path for e in manifest.evaluations.values() if e.depth < depth}
    for node_id in sorted(record.frontier):
        lineage = ancestors(manifest, manifest.nodes[node_id])
        others = manifest.nodes.values() if manifest.dedupe_scope == "global" else lineage
        taken = {
            idea.key
            for each in others
            for idea in each.ideas
            if idea.depth == depth and (each.node_id < node_id or idea.path in by_hand)
        }
        expected = leftovers.for_depth(manifest, lineage, depth, tried, taken)
        chosen = [i for i in lineage[0].ideas if i.depth == depth and i.path not in by_hand]
        if chosen:
            yield from compare_left_over(f"depth {depth}", node_id, chosen, expected)


def compare_left_over(
    owner: str, node_id: str, chosen: list[IdeaRecord], expected: list[IdeaRecord]
) -> Iterator[Finding]:
    """Check that the ideas of one expansion begin with the leftovers, as far as there was room."""
    recorded = [leftovers.source_of(idea) for idea in chosen]
    offered: list[str | None] = [idea.path for idea in expected[: len(chosen)]]
    rest: list[str | None] = [None] * (len(chosen) - len(offered))
    if recorded != offered + rest:
        message = f"the ideas of {node_id} do not begin with those that its ancestors left over"
        yield Finding("queue_differs", owner, message)


def _found_no_ideas(manifest: Manifest, record: DepthRecord) -> bool:
    """Return whether the frontier had no ideas and the run ended there."""
    nodes = [manifest.nodes[node_id] for node_id in record.frontier]
    expanded = all(node.expanded_for_depth == record.depth for node in nodes)
    empty = not any(idea.depth == record.depth for node in nodes for idea in node.ideas)
    return expanded and empty and manifest.stop_reason == "no_new_ideas"


def _select(
    manifest: Manifest, rules: Rules, record: DepthRecord, evaluations: list[Evaluation]
) -> rounds.Selection:
    known = KnownCode.of(n for n in manifest.nodes.values() if n.depth < record.depth)
    confirmations = None
    if manifest.confirm_configs:
        confirmations = {
            e.eval_id: e.confirmation for e in evaluations if e.confirmation is not None
        }
    return rounds.select_beam(evaluations, rules.beam_width, known, confirmations)


def compare_decisions(
    evaluations: list[Evaluation], decisions: dict[str, Decision]
) -> Iterator[Finding]:
    """Compare the recorded decisions with the repeated ones."""
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


def _gate(decision: Decision) -> str:
    said = "pass" if decision.gate.passed else "fail"
    return f"{said} ({', '.join(decision.gate.reasons)})"
