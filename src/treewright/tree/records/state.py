"""The effect of events on a manifest. The only side effect is on that manifest.

Applying an event twice has the effect of applying it once. Completions may arrive in any order: the
resulting state is the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from treewright.llm.usage import Usage, sane_usage
from treewright.tree.records import events as ev
from treewright.tree.records import layout
from treewright.tree.records.model import (
    UNSET,
    Dedupe,
    DepthRecord,
    EvalOutcome,
    Evaluation,
    FileDigest,
    IdeaRecord,
    Manifest,
    Node,
    Unset,
    ancestors,
)

_COST_DIGITS = 9


def apply(manifest: Manifest | None, event: ev.Event) -> Manifest | None:
    """Return the manifest after an event, or None if the run has not been created yet."""
    if isinstance(event, ev.RunCreated):
        return event.manifest if manifest is None else manifest
    if manifest is None:
        return None
    match event:
        case ev.LeaseTaken():
            _lease_taken(manifest, event)
        case ev.NodeExpanded():
            _expanded(manifest, event)
        case ev.Queued():
            _queued(manifest, event)
        case ev.Started():
            _started(manifest.evaluations[event.eval_id], event)
        case ev.Requeued():
            _requeued(manifest, event)
        case ev.Completed() | ev.Failed():
            _finished(manifest, event)
        case ev.HeldoutMeasured():
            node = manifest.nodes[event.node_id]
            if node.artifacts.heldout is None:
                node.artifacts.heldout = event.artifact
                _spend_seconds(manifest, event.seconds)
        case ev.Confirmed():
            evaluation = manifest.evaluations[event.eval_id]
            if evaluation.confirmation is None:
                evaluation.confirmation = event.confirmation
                manifest.spent.confirmations += 1
                _spend_seconds(manifest, event.seconds)
        case ev.Decided():
            _decided(manifest, event)
        case ev.Settled():
            _settled(manifest, event)
        case ev.Stopped():
            manifest.stop_reason = event.reason
        case ev.Steered():
            _steered(manifest, event)
    return manifest


def depth_record(manifest: Manifest, depth: int) -> DepthRecord:
    """Return the record of a depth; create it if it is missing."""
    while len(manifest.depths) < depth:
        manifest.depths.append(DepthRecord(depth=len(manifest.depths) + 1))
    return manifest.depths[depth - 1]


def _lease_taken(manifest: Manifest, event: ev.LeaseTaken) -> None:
    if event.owner.takeover in ("stale", "forced", "dead"):
        known = {takeover["epoch"] for takeover in manifest.takeovers}
        if event.epoch not in known:
            manifest.takeovers.append(
                {
                    "epoch": event.epoch,
                    "at": event.at,
                    "how": event.owner.takeover,
                    "host": event.owner.host,
                    "pid": event.owner.pid,
                }
            )


def _expanded(manifest: Manifest, event: ev.NodeExpanded) -> None:
    node = manifest.nodes[event.node_id]
    policy_record = manifest.policy_record
    record = depth_record(manifest, event.depth)
    if policy_record is None:
        if (node.expanded_for_depth or 0) >= event.depth:
            return
        record.frontier = record.frontier or list(manifest.frontier)
        asked = [] if isinstance(record.asked, Unset) else record.asked
        record.asked = [*asked, node.node_id]
    else:
        if event.expansion == UNSET or event.expansion <= policy_record.expansions:
            return
        policy_record.expansions = node.expansion = event.expansion
        if node.node_id not in record.frontier:
            record.frontier.append(node.node_id)
        if not isinstance(event.exhausted, Unset):
            policy_record.exhausted.append(event.exhausted)
            _leave_frontier(manifest, node)
    record.started_at = record.started_at or event.at
    node.expanded_for_depth = event.depth
    node.ideas = [*node.ideas, *event.ideas]
    latest = event.ideas
    if policy_record is None:  # ideas added by the user are among those of a depth
        latest = [idea for idea in node.ideas if idea.depth == event.depth]
    node.generated_idea_files = [idea.path for idea in latest]
    node.context_ideas_dirs = event.context_ideas_dirs
    node.context_idea_files = event.context_idea_files
    skipped = [*(node.dedupe.skipped if node.dedupe else []), *event.skipped]
    node.dedupe = Dedupe(scope=event.dedupe_scope, skipped=skipped)
    node.status = "expanded"
    if node.node_id not in manifest.expanded:
        manifest.expanded.append(node.node_id)
    _spend(manifest, event.usage, {"ideas": event.usage})


def _queued(manifest: Manifest, event: ev.Queued) -> None:
    if event.eval_id in manifest.evaluations:
        return
    manifest.evaluations[event.eval_id] = Evaluation(
        eval_id=event.eval_id,
        parent_node_id=event.parent_node_id,
        depth=event.depth,
        idea_id=event.idea_id,
        idea_path=event.idea_path,
        idea_text_path=event.idea_path,
        idea_sha256=event.idea_sha256,
        experiment_dir=event.experiment_dir,
        queued_at=event.at,
        seen=event.seen,
        without=event.without,
    )
    depth_record(manifest, event.depth).eval_ids.append(event.eval_id)
    policy_record = manifest.policy_record
    if policy_record is not None:
        node = manifest.nodes[event.parent_node_id]
        node.tried = (node.tried or 0) + 1
        if node.tried == policy_record.branching:
            _leave_frontier(manifest, node)
    manifest.spent.evals += 1


def _started(evaluation: Evaluation, event: ev.Started) -> None:
    if evaluation.status in ("completed", "failed") or event.attempt <= evaluation.attempt:
        return
    evaluation.status = evaluation.task_state = "running"
    evaluation.attempt = event.attempt
    evaluation.started_at = event.at
    evaluation.boot_id = event.boot_id


def _requeued(manifest: Manifest, event: ev.Requeued) -> None:
    evaluation = manifest.evaluations[event.eval_id]
    if evaluation.status == "running" and evaluation.attempt == event.attempt:
        _spend(manifest, event.usage, {} if isinstance(event.roles, Unset) else event.roles)
        if event.company is not None:
            evaluation.lost_alone += event.company == 0
            evaluation.lost_together += event.company > 0
        evaluation.pauses += event.paused
        evaluation.status = "pending"
        evaluation.task_state = "queued"
        evaluation.started_at = None


def _finished(manifest: Manifest, event: ev.Completed | ev.Failed) -> None:
    evaluation = manifest.evaluations[event.eval_id]
    if evaluation.status in ("completed", "failed"):
        return
    outcome: EvalOutcome = event.outcome
    state = "completed" if isinstance(event, ev.Completed) else "failed"
    evaluation.status = evaluation.task_state = state
    evaluation.finished_at = event.at
    evaluation.worker = event.worker
    evaluation.worker_pid = event.worker_pid
    evaluation.summary_path = layout.summary(evaluation.experiment_dir)
    for name in EvalOutcome.__struct_fields__:
        setattr(evaluation, name, getattr(outcome, name))
    if outcome.results_csv is not None:
        evaluation.candidate_results_csv_path = outcome.results_csv.path
    _spend_seconds(manifest, math.fsum(outcome.timings.values()))
    evaluation.usage = sane_usage(outcome.usage)
    roles = {} if isinstance(outcome.roles, Unset) else outcome.roles
    _spend(manifest, outcome.usage, roles)


def _decided(manifest: Manifest, event: ev.Decided) -> None:
    if manifest.current_depth >= event.depth:
        return
    for eval_id, decision in event.decisions.items():
        manifest.evaluations[eval_id].decision = decision
    for node in event.nodes:
        manifest.nodes[node.node_id] = node
    record = depth_record(manifest, event.depth)
    record.promoted = [node.node_id for node in event.nodes]
    record.finished_at = event.at
    record.rejected_worktrees_kept = event.rejected_worktrees_kept
    manifest.current_depth = event.depth
    manifest.frontier = list(event.frontier)
    for node_id in event.frontier:
        manifest.nodes[node_id].status = "frontier"
    manifest.stop_reason = event.stop_reason


def _settled(manifest: Manifest, event: ev.Settled) -> None:
    evaluation, policy_record = manifest.evaluations[event.eval_id], manifest.policy_record
    if evaluation.decision is not None or policy_record is None:
        return
    evaluation.decision = event.decision
    policy_record.settled += 1
    evaluation.place = policy_record.settled
    record = depth_record(manifest, evaluation.depth)
    record.finished_at = event.at
    record.rejected_worktrees_kept |= event.rejected_worktrees_kept
    node = event.node
    if node is not None:
        manifest.nodes[node.node_id] = node
        record.promoted.append(node.node_id)
        manifest.current_depth = max(manifest.current_depth, node.depth)
        if node.depth < manifest.max_depth:
            manifest.frontier.append(node.node_id)


def _leave_frontier(manifest: Manifest, node: Node) -> None:
    if node.node_id in manifest.frontier:
        manifest.frontier.remove(node.node_id)


def _spend_seconds(manifest: Manifest, seconds: float) -> None:
    """Add seconds, rounded to milliseconds: the sum does not depend on the order of events."""
    manifest.spent.seconds = round(manifest.spent.seconds + round(seconds, 3), 3)


def _spend(manifest: Manifest, claimed: Usage, roles: Mapping[str, Usage] | None = None) -> None:
    usage = sane_usage(claimed)
    cost = round(usage.cost_usd, _COST_DIGITS)
    manifest.spent.cost_usd = round(manifest.spent.cost_usd + cost, _COST_DIGITS)
    manifest.spent.prompt_tokens += usage.prompt_tokens
    manifest.spent.completion_tokens += usage.completion_tokens
    manifest.spent.unpriced_tokens += usage.unpriced_tokens
    for role, by_role in (roles or {}).items():
        if by_role != Usage():
            known = {} if isinstance(manifest.roles, Unset) else manifest.roles
            total = known.get(role, Usage()) + sane_usage(by_role)
            cost = round(total.cost_usd, _COST_DIGITS)
            manifest.roles = {**known, role: msgspec.structs.replace(total, cost_usd=cost)}


def _steered(manifest: Manifest, event: ev.Steered) -> None:
    """Apply a command to the manifest, unless it has been applied before."""
    known = [] if isinstance(manifest.steering, Unset) else manifest.steering
    if any(record.command.command_id == event.record.command.command_id for record in known):
        return
    record = msgspec.structs.replace(event.record, at=event.at)
    manifest.steering = [*known, record]
    if record.refused is not None:
        return
    for name, value in record.command.settings.items():
        setattr(manifest, name, value)
    if record.reopened and manifest.policy_record is None:
        del manifest.depths[manifest.current_depth :]  # a round that had begun without ideas
    for node_id in record.reopened:
        _reopen(manifest, manifest.nodes[node_id])
    if not isinstance(event.idea, Unset) and record.node_id is not None:
        _add_idea(manifest, manifest.nodes[record.node_id], event.idea)
    if not isinstance(event.frontier, Unset):
        manifest.frontier = list(event.frontier)
        if manifest.policy_record is None:
            for node_id in manifest.frontier:
                node = manifest.nodes[node_id]
                begun = node.expanded_for_depth == manifest.current_depth + 1
                node.status = "expanded" if begun else "frontier"
            for node in manifest.nodes.values():
                if node.node_id not in event.frontier:
                    node.status = "expanded"
    if not isinstance(event.stop_reason, Unset):
        manifest.stop_reason = event.stop_reason


def _reopen(manifest: Manifest, node: Node) -> None:
    """Let a node be expanded again that was found without ideas. Only for runs with a barrier."""
    if manifest.policy_record is not None:
        return
    depth = max((idea.depth for idea in node.ideas), default=None)
    node.expanded_for_depth = depth
    node.generated_idea_files = [idea.path for idea in node.ideas if idea.depth == depth]
    node.context_idea_files = [
        FileDigest(idea.path, idea.sha256)
        for ancestor in ancestors(manifest, node)
        for idea in ancestor.ideas
        if depth is not None and idea.depth < depth
    ]
    if depth is None and node.node_id in manifest.expanded:
        manifest.expanded.remove(node.node_id)


def _add_idea(manifest: Manifest, node: Node, idea: IdeaRecord) -> None:
    """Add an idea of the user to a node.

    With a barrier, a node outside of the frontier gets no other ideas: it counts as expanded for
    the depth of the idea.
    """
    node.ideas = [*node.ideas, idea]
    if manifest.policy_record is not None:
        if isinstance(idea.expansion, int):
            manifest.policy_record.expansions = max(
                manifest.policy_record.expansions, idea.expansion
            )
        return
    if node.expanded_for_depth == idea.depth or node.node_id not in manifest.frontier:
        node.expanded_for_depth = idea.depth
        same = [each.path for each in node.ideas if each.depth == idea.depth]
        node.generated_idea_files = same
        if node.node_id not in manifest.expanded:
            manifest.expanded.append(node.node_id)
