"""Beam search: the candidates that a depth promotes, and the way to the next depth. Pure.

Candidates pass a gate against their parent and are ranked against the root, so candidates of
different parents are comparable. Candidates with the same code (the same ideas in another order)
fill one place of the beam; equal scores of different code fill two. `select_beam` names the
candidates that must be confirmed first, and is called again with their confirmations.

The next frontier is the set of promoted nodes. With patience, a round that promoted nothing is
followed by another one on the same nodes. With elites, the best nodes of the run stay in the
frontier, so a child that is merely better than its own parent cannot push out the best node.
Settings may change during a run: every round keeps the settings that held when it was decided.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treewright.tree.deciding import promotion
from treewright.tree.deciding.promotion import KnownCode
from treewright.tree.records.model import (
    UNSET,
    Confirmation,
    Decision,
    DepthRecord,
    Evaluation,
    Fate,
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
_BRINGS_BACK = ("inject", "boost", "reopen")


def rank(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return the evaluations that pass the gate, best first. Ties go to the balance over all
    metrics, then to the gain on the parent, then to the older id."""
    return sorted(
        (e for e in evaluations if promotion.decide_gate(e.parent_relative, e.error).passed),
        key=_rank_key,
    )


def _rank_key(evaluation: Evaluation) -> tuple[float, float, float, str]:
    root, parent = evaluation.root_relative, evaluation.parent_relative
    return (
        -(root.score if root else float("-inf")),
        -((root.balance or 0.0) if root else 0.0),
        -(parent.score if parent else float("-inf")),
        evaluation.eval_id,
    )


@dataclass(frozen=True, slots=True)
class Selection:
    """The outcome of a depth, as far as it is known.

    `to_confirm` lists the candidates that must be swept on held-out configs before more can be
    decided, best first; it is empty when the selection is complete. They fill the beam if all of
    them are confirmed. If one is not, the others are still needed, so no candidate is swept that a
    one-by-one search would have left out.
    """

    promoted: list[str]
    decisions: dict[str, Decision]
    to_confirm: tuple[str, ...] = ()


def select_beam(
    evaluations: Sequence[Evaluation],
    beam_width: int,
    known: KnownCode,
    confirmations: Mapping[str, Confirmation] | None,
) -> Selection:
    """Fill the beam from the best candidate down.

    Args:
        evaluations: The evaluations of the depth.
        beam_width: The most candidates to promote.
        known: The code and the results that are nodes already.
        confirmations: The confirmations so far; None if the run asks for none.
    """
    ranked = rank(evaluations)
    places = {e.eval_id: place for place, e in enumerate(ranked, start=1)}
    fates: dict[str, Fate] = {}
    promoted: list[str] = []
    seen = known.copy()
    missing: list[str] = []
    passed_over = KnownCode()
    for evaluation in ranked:
        eval_id, twin = evaluation.eval_id, seen.twin(evaluation)
        if twin is not None:
            fates[eval_id] = twin
            if missing:
                passed_over.add(evaluation)
        elif passed_over.twin(evaluation) is not None:
            # Should one that is still to be measured not hold, its twin may be promoted, and this
            # one would be that twin's: whether it is needed can be said only then.
            break
        elif len(promoted) == beam_width:
            fates[eval_id] = "beyond_beam"
        elif confirmations and eval_id in confirmations and not confirmations[eval_id].held:
            fates[eval_id] = "not_confirmed"
        else:
            if confirmations is not None and eval_id not in confirmations:
                missing.append(eval_id)  # it counts as confirmed until it has a confirmation
            fates[eval_id] = "promoted"
            promoted.append(eval_id)
            seen.add(evaluation)
    if missing:
        return Selection([], {}, tuple(missing))
    decisions = {
        e.eval_id: Decision(
            fate=fates.get(e.eval_id, "evaluation_failed" if e.error else "gate_failed"),
            gate=promotion.decide_gate(e.parent_relative, e.error),
            rank=places.get(e.eval_id),
        )
        for e in evaluations
    }
    return Selection(promoted, decisions)


def setting(manifest: Manifest, name: str) -> Any:
    """Return the present value of a setting, or its default if no flag gave one."""
    value = getattr(manifest, name)
    return _UNSET[name] if value is UNSET else value


def settings(manifest: Manifest) -> Settings:
    """Return the present values of the settings that may change during a run, by name."""
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
    """Return the present settings."""
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
    if not done.promoted and gives_up(rules, done):
        return []
    frontier = list(done.promoted or done.frontier)
    if rules.elites:
        dry = {n.node_id for n in nodes.values() if _is_dry(manifest, n, done.depth)}
        if not done.promoted:
            frontier = [node_id for node_id in frontier if node_id not in dry]
        left_out = dry.union(banned)
        there = [n for n in nodes.values() if n.depth <= done.depth and n.node_id not in left_out]
        best = sorted(there, key=lambda node: (-node.score, node.depth, node.node_id))
        elites = sorted(node.node_id for node in best[: rules.elites])
        frontier += [node_id for node_id in elites if node_id not in frontier]
    return [node_id for node_id in frontier if node_id not in banned]


def gives_up(rules: Rules, done: Round) -> bool:
    """Return whether the patience of the search with rounds without promotion has ended."""
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
