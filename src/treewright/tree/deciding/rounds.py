"""The rounds of beam search: the next frontier, and whether there is a next round. Pure.

The frontier is the set of promoted nodes. With patience, a round that promoted nothing is followed
by another one on the same nodes. With elites, the best nodes of the run stay in the frontier, so a
child that is merely better than its own parent cannot push out the best node. Settings may change
during a run: every round keeps the settings that held when it was decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from treewright.tree.records.model import (
    UNSET,
    DepthRecord,
    IdeaRecord,
    Manifest,
    Node,
    StopReason,
)
from treewright.tree.records.steering import (
    DEFAULT_ELITES,
    DEFAULT_PATIENCE,
    Settings,
    Steering,
    applied,
    banned_nodes,
    undo,
    until,
)

OF_BEAM_SEARCH = ("beam_width", "stop_on_empty_frontier", "patience", "elites")
CHANGEABLE = ("ideas_per_node", "max_depth", "max_total_idea_evals", "caps", *OF_BEAM_SEARCH)
"""Settings that may change during a run; earlier decisions do not depend on them."""
_UNSET = {"patience": DEFAULT_PATIENCE, "elites": DEFAULT_ELITES, "caps": {}}


def setting(manifest: Manifest, name: str) -> Any:
    """Return the present value of a setting, or its default if no flag gave one."""
    value = getattr(manifest, name)
    return _UNSET[name] if value is UNSET else value


def settings(manifest: Manifest) -> Settings:
    return {name: setting(manifest, name) for name in CHANGEABLE}


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a round."""

    ideas_per_node: int
    max_depth: int
    max_total_idea_evals: int | None
    beam_width: int
    stop_on_empty_frontier: bool
    patience: int
    elites: int
    caps: dict[str, dict[str, float]]


def rules_now(manifest: Manifest) -> Rules:
    return Rules(**settings(manifest))


def rules_of(manifest: Manifest, depth: int) -> Rules:
    """Return the settings by which a depth was decided, or will be."""
    later = [record for record in applied(manifest.steering) if record.depth >= depth]
    return Rules(**undo(settings(manifest), later))


def rules_after(manifest: Manifest, change: Steering) -> Rules:
    """Return the settings that held from a change to the next one."""
    records = applied(manifest.steering)
    return Rules(**undo(settings(manifest), records[len(until(records, change)) :]))


def changes_after(manifest: Manifest, depth: int) -> list[Steering]:
    """Return the changes between a depth and the beginning of the next."""
    records = applied(manifest.steering)
    return [record for record in records if record.depth == depth and not record.in_round]


@dataclass(frozen=True, slots=True)
class Round:
    """A decided round: its frontier and its promoted nodes. `unlucky` counts the consecutive
    rounds without promotion up to this one, `evaluations` those of the run by then."""

    depth: int
    frontier: list[str]
    promoted: list[str]
    unlucky: int
    evaluations: int


def last_round(manifest: Manifest) -> Round:
    """Return the last decided round; before the first one, a round that promoted the root."""
    depth = manifest.current_depth
    if not depth:
        roots = [node.node_id for node in manifest.nodes.values() if node.parent_node_id is None]
        return Round(0, roots, roots, 0, 0)
    record = manifest.depths[depth - 1]
    queued = unlucky = 0
    for each in manifest.depths[:depth]:
        queued += len(each.eval_ids)
        unlucky = unlucky_after(manifest, unlucky, each, each.promoted, queued)
    return Round(depth, record.frontier, record.promoted, unlucky, queued)


def unlucky_after(
    manifest: Manifest, before: int, record: DepthRecord, promoted: list[str], evaluations: int
) -> int:
    """Return the number of consecutive rounds without promotion, including this one.

    A round that the budget cut short does not count: some of its nodes were not asked for ideas.

    Args:
        manifest: The run.
        before: The number before this round.
        record: The round.
        promoted: Its promoted nodes.
        evaluations: The evaluations of the run after it.
    """
    if promoted:
        return 0
    limit = rules_of(manifest, record.depth).max_total_idea_evals
    asked = [] if record.asked is UNSET else record.asked
    is_cut_short = (
        limit is not None and evaluations >= limit and not set(record.frontier) <= set(asked)
    )
    return before if is_cut_short else before + 1


def next_frontier(
    manifest: Manifest,
    rules: Rules,
    done: Round,
    nodes: Mapping[str, Node],
    banned: Collection[str] = (),
) -> list[str]:
    """Return the nodes to expand after a round; `nodes` are those of the run with the new ones."""
    found = _next_frontier(manifest, rules, done, nodes, banned)
    return [node_id for node_id in found if node_id not in banned]


def _next_frontier(
    manifest: Manifest,
    rules: Rules,
    done: Round,
    nodes: Mapping[str, Node],
    banned: Collection[str],
) -> list[str]:
    promoted = list(done.promoted)
    if not promoted and gives_up(rules, done):
        return []
    if not rules.elites:
        return promoted or list(done.frontier)
    kept = promoted or [n for n in done.frontier if not _is_dry(manifest, nodes[n], done.depth)]
    there = [
        node
        for node in nodes.values()
        if node.depth <= done.depth
        and node.node_id not in banned
        and not _is_dry(manifest, node, done.depth)
    ]
    best = sorted(there, key=lambda node: (-node.score, node.depth, node.node_id))
    elites = sorted(node.node_id for node in best[: rules.elites])
    return [*kept, *(node_id for node_id in elites if node_id not in kept)]


def gives_up(rules: Rules, done: Round) -> bool:
    return rules.stop_on_empty_frontier and done.unlucky >= rules.patience


def stop_reason(rules: Rules, done: Round) -> StopReason | None:
    """Return why the search ends with this round; None if it goes on."""
    limit = rules.max_total_idea_evals
    if limit is not None and done.evaluations >= limit:
        return "max_total_idea_evals"
    if not done.promoted and gives_up(rules, done):
        return "empty_frontier"
    if done.depth >= rules.max_depth:
        return "max_depth_reached"
    return None


def after_changes(
    manifest: Manifest, done: Round, rules: Rules, changes: list[Steering]
) -> tuple[list[str], StopReason | None]:
    """Return the frontier and the stop reason after changes between two rounds.

    Args:
        manifest: The run.
        done: The round before the changes.
        rules: The settings with the changes.
        changes: All changes between these rounds.
    """
    banned = banned_nodes([r for r in applied(manifest.steering) if r.depth < done.depth])
    banned |= banned_nodes(changes)
    frontier = next_frontier(manifest, rules, done, manifest.nodes, banned)
    wanted = [r.node_id for r in changes if r.command.action in _BRINGS_BACK and r.node_id]
    wanted = [node_id for node_id in dict.fromkeys(wanted) if node_id not in banned]
    reason = stop_reason(rules, done)
    if reason == "empty_frontier" and wanted:
        reason = None
    frontier += [node_id for node_id in wanted if node_id not in frontier]
    if reason is None and not frontier:
        reason = "empty_frontier"
    return frontier, reason


_BRINGS_BACK = ("inject", "boost", "reopen")


def _is_dry(manifest: Manifest, node: Node, depth: int) -> bool:
    """Return whether the node had no idea when it was last asked, up to that round."""
    rounds = manifest.depths[:depth]
    asked = [r.depth for r in rounds if r.asked is not UNSET and node.node_id in r.asked]
    return bool(asked) and not any(idea.depth == asked[-1] for idea in node.ideas)


def tasks(manifest: Manifest, frontier: Iterable[str], depth: int) -> list[tuple[str, IdeaRecord]]:
    """Return the node and idea of every evaluation of a depth, in order: ideas that the user put
    first, then by node."""
    found = [
        (node_id, idea)
        for node_id in sorted(frontier)
        for idea in manifest.nodes[node_id].ideas
        if idea.depth == depth
    ]
    first = {r.idea_path for r in applied(manifest.steering) if r.command.first}
    return sorted(found, key=lambda task: task[1].path not in first) if first else found


def with_new(manifest: Manifest, new: Iterable[Node]) -> dict[str, Node]:
    return {**manifest.nodes, **{node.node_id: node for node in new}}
