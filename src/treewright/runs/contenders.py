"""Reads runs for a comparison: their curves, their ideas or goals; each against the first."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from treewright.kernel.clock import seconds_between
from treewright.kernel.errors import UsageError
from treewright.runs.comparison import (
    Comparison,
    Contender,
    Difference,
    Tried,
    put_together,
)
from treewright.runs.curves import Spent, curve
from treewright.runs.loading import Run, load_run
from treewright.runs.pairing import against, key_of
from treewright.runs.payments import payments
from treewright.runs.proof_run import ProofRun
from treewright.runs.search_run import SearchRun
from treewright.runs.tree_run import TreeRun
from treewright.tree.records.description import best_node

_KINDS = {"tree": "tree run", "proof": "proof run", "search": "search"}


def compare(*runs: str | os.PathLike[str] | Run) -> Comparison:
    """Runs side by side, given as they are or by what `load_run` takes; of one kind, two or more.

    `print` it, or let a notebook show it; its fields are those of `treewright compare --json`.
    """
    loaded = [load_run(r) if isinstance(r, str | os.PathLike) else r for r in runs]
    return compare_runs(loaded)


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """Runs of one kind, at least two."""
    if len(runs) < 2:
        raise UsageError("give at least two runs to compare")
    other = next((run for run in runs if run.kind != runs[0].kind), None)
    if other is not None:
        kinds = f"{runs[0].path} is a {_KINDS[runs[0].kind]}, {other.path} a {_KINDS[other.kind]}"
        raise UsageError(f"only runs of one kind can be compared: {kinds}")
    if len({run.path.resolve() for run in runs}) < len(runs):
        raise UsageError("the same run is given twice")
    names = _distinct_names([run.run_id for run in runs], [run.path for run in runs])
    notes: list[str] = []
    found: list[Difference] = []
    for name, run in zip(names[1:], runs[1:], strict=True):
        found += against((name, names[0]), run, runs[0], notes)
    contenders = [contender(run, name) for run, name in zip(runs, names, strict=True)]
    return put_together(runs[0].kind, contenders, found, list(dict.fromkeys(notes)))


def contender(run: Run, name: str) -> Contender:
    match run:
        case TreeRun():
            return _tree(run, name)
        case ProofRun():
            return _proof(run, name)
        case SearchRun():
            return _search(run, name)


# -- each kind as a contender ---------------------------------------------------------------


def _tree(run: TreeRun, name: str) -> Contender:
    """What was promoted counts from when it was measured: a depth is decided as a whole."""
    manifest = run.manifest
    began = manifest.created_at
    paid = payments(run)
    events: list[Spent] = []
    for one in manifest.evaluations.values():
        if one.finished_at is None:
            continue
        node = manifest.nodes.get(one.decision.promoted_to_node_id or "") if one.decision else None
        seconds = seconds_between(began, one.finished_at) or 0.0
        cost = None if paid is None else 0.0  # `paid` has its cost, and that of what failed
        events.append(Spent(seconds, cost, node.score if node else None))
    best = best_node(manifest)
    beside = [Spent(one.seconds, one.cost_usd, None, counts=False) for one in paid or ()]
    points = curve([*beside, *events], start=0.0)
    return Contender(
        name,
        str(run.path),
        run.run_id,
        best.score,
        best.node_id,
        points,
        tuple(_ideas(run)),
        len(events),
        points[-1].seconds,
        None if paid is None else manifest.spent.cost_usd or None,
        run.is_finished,
    )


def _ideas(run: TreeRun) -> list[Tried]:
    """Of an idea that was tried on several nodes, the best that became of it."""
    keys = {idea.path: idea.key for node in run.manifest.nodes.values() for idea in node.ideas}
    found: dict[str, Tried] = {}
    for one in run.manifest.evaluations.values():
        key = keys.get(one.idea_path, one.idea_sha256)
        outcome = one.decision.fate if one.decision else one.status
        if key not in found or outcome == "promoted":
            found[key] = Tried(key, run.facts.title(one), outcome)
    return list(found.values())


def _proof(run: ProofRun, name: str) -> Contender:
    events: list[Spent] = []
    before = 0.0
    for goal in run.facts.goals:
        last = len(goal.iterations) - 1
        for index, turn in enumerate(goal.iterations):
            closed = 1.0 if index == last and goal.status == "proved" else None
            events.append(Spent(before + turn.elapsed, None, closed))
        before += goal.seconds
    points = curve(events, start=0.0, adds=True)
    tried = [Tried("\n".join(key_of(goal)), goal.name, goal.status) for goal in run.facts.goals]
    return Contender(
        name, str(run.path), run.run_id, float(run.proved), None, points, tuple(tried),
        len(run.facts.iterations), before, None, run.is_finished,
    )  # fmt: skip


def _search(run: SearchRun, name: str) -> Contender:
    history = run.history
    higher = history.settings.direction == "maximize"
    events = [
        Spent(run.seconds(at), None, node.score if (node := history.nodes.get(number)) else None)
        for number, at in run.outcomes()
    ]
    points = curve(events, higher=higher, start=history.root.score)
    best = history.best
    return Contender(
        name,
        str(run.path),
        run.run_id,
        best.score if best else None,
        str(best.number) if best else None,
        points,
        (),
        history.evaluations,
        max((event.seconds for event in events), default=0.0),
        None,
        run.is_finished,
        "higher" if higher else "lower",
    )


def _distinct_names(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """Short names of runs; where two are the same, their paths as far as these differ."""
    above = os.path.commonpath([path.absolute().parent for path in paths])
    found = [
        os.path.relpath(path.absolute(), above) if names.count(name) > 1 else name
        for name, path in zip(names, paths, strict=True)
    ]
    return found if len(set(found)) == len(found) else [str(path) for path in paths]
