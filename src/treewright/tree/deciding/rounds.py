"""From one round of beam search to the next: the frontier, and whether there is a next. Pure.

The frontier is what was promoted. With patience a round that promoted nothing is followed by
another one on the same nodes; with elites the best nodes of the run stay in it, so that no child
that is merely better than its own parent takes the place of the best. The settings that this goes
by may be changed while a run is there: those of a round are the ones that held when it was decided.
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
"""What may be changed while a run is there: what was decided before does not rest on it."""
_UNSET = {"patience": DEFAULT_PATIENCE, "elites": DEFAULT_ELITES, "caps": {}}


def setting(manifest: Manifest, name: str) -> Any:
    """The value that holds now; of one that no flag gave, its default."""
    value = getattr(manifest, name)
    return _UNSET[name] if value is UNSET else value


def settings(manifest: Manifest) -> Settings:
    return {name: setting(manifest, name) for name in CHANGEABLE}


@dataclass(frozen=True, slots=True)
class Rules:
    """What a round goes by."""

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
    """Those by which that depth was decided, or will be."""
    later = [record for record in applied(manifest.steering) if record.depth >= depth]
    return Rules(**undo(settings(manifest), later))


def rules_after(manifest: Manifest, change: Steering) -> Rules:
    """Those that held from a change to the next one."""
    records = applied(manifest.steering)
    return Rules(**undo(settings(manifest), records[len(until(records, change)) :]))


def changes_after(manifest: Manifest, depth: int) -> list[Steering]:
    """What was changed between that depth and the beginning of the next."""
    records = applied(manifest.steering)
    return [record for record in records if record.depth == depth and not record.in_round]


@dataclass(frozen=True, slots=True)
class Round:
    """A round whose candidates have their fates: what it grew from, what it promoted, how many
    rounds in a row promoted nothing with it, how many evaluations the run had by then."""

    depth: int
    frontier: list[str]
    promoted: list[str]
    unlucky: int
    evaluations: int


def last_round(manifest: Manifest) -> Round:
    """The last that was decided; before the first one a round that promoted the root."""
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
    """How many rounds in a row promoted nothing, with this one, after which the run had so many
    evaluations. One that the budget cut short says nothing about the nodes it left unasked."""
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
    """The nodes to expand after a round; `nodes` are those of the run with the new ones."""
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
    """Why the search ends with this round; None if it goes on."""
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
    """The frontier and the stop reason once somebody has changed something between two rounds:
    `changes` are all of this place, `rules` those that hold with them."""
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
    """Whether there was no idea for it when it was last asked, up to that round."""
    rounds = manifest.depths[:depth]
    asked = [r.depth for r in rounds if r.asked is not UNSET and node.node_id in r.asked]
    return bool(asked) and not any(idea.depth == asked[-1] for idea in node.ideas)


def tasks(manifest: Manifest, frontier: Iterable[str], depth: int) -> list[tuple[str, IdeaRecord]]:
    """What a depth tries, in the order of its evaluations: ideas that somebody wants first, then
    by node; it depends on nothing else."""
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
