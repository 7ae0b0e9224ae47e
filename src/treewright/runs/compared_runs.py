"""Read runs for a comparison, and compare each with the first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from treewright.kernel.clock import seconds_between
from treewright.kernel.errors import UsageError
from treewright.kernel.storage import untrusted
from treewright.kernel.storage.artifacts import Artifact
from treewright.proving.report.facts import GoalFacts
from treewright.runs.comparison import (
    ComparedRun,
    Comparison,
    Difference,
    Spending,
    Tried,
    build_comparison,
    curve,
    difference,
)
from treewright.runs.proof_run import ProofRun
from treewright.runs.run_loader import Run, load_run
from treewright.runs.search_run import SearchRun
from treewright.runs.tree_run import TreeRun, payments
from treewright.search import scores
from treewright.tree.config import MetricConfig
from treewright.tree.deciding import objectives, paired, scoring
from treewright.tree.deciding.results import Part, Results
from treewright.tree.records.description import best_node
from treewright.tree.records.model import Unset

_KINDS = {"tree": "tree run", "proof": "proof run", "search": "search"}


def compare(*runs: str | os.PathLike[str] | Run) -> Comparison:
    """Compare two or more runs of one kind.

    Args:
        runs: Runs, or paths and ids that `load_run` accepts.

    Returns:
        A comparison to print or to show in a notebook, with the fields of `treewright compare
        --json`.

    Raises:
        UsageError: There are fewer than two runs, or runs of different kinds.

    Example:
        >>> import treewright
        >>> for name, seed in (("a.search", 1), ("b.search", 2)):
        ...     with treewright.open_search(name, policy="random", seed=seed, budget=5) as search:
        ...         _ = search.run(lambda task: {"x": task.seed % 7, "y": task.seed % 9})
        >>> [run.name for run in compare("a.search", "b.search").runs]
        ['a.search', 'b.search']
    """
    loaded = [load_run(r) if isinstance(r, str | os.PathLike) else r for r in runs]
    return compare_runs(loaded)


def compare_runs(runs: Sequence[Run]) -> Comparison:
    """Compare loaded runs of one kind, at least two."""
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
        found += compare_with_first((name, names[0]), run, runs[0], notes)
    compared = [read_compared_run(run, name) for run, name in zip(runs, names, strict=True)]
    return build_comparison(runs[0].kind, compared, found, list(dict.fromkeys(notes)))


def read_compared_run(run: Run, name: str) -> ComparedRun:
    """Return a run of any kind for the comparison."""
    match run:
        case TreeRun():
            return _tree(run, name)
        case ProofRun():
            return _proof(run, name)
        case SearchRun():
            return _search(run, name)


def _tree(run: TreeRun, name: str) -> ComparedRun:
    """Read a tree run. A promoted result counts from the end of its evaluation."""
    manifest = run.manifest
    began = manifest.created_at
    paid = payments(run)
    events: list[Spending] = []
    for one in manifest.evaluations.values():
        if one.finished_at is None:
            continue
        node = manifest.nodes.get(one.decision.promoted_to_node_id or "") if one.decision else None
        seconds = seconds_between(began, one.finished_at) or 0.0
        cost = None if paid is None else 0.0  # `paid` has the costs, also of failures
        events.append(Spending(seconds, cost, node.score if node else None))
    best = best_node(manifest)
    other = [Spending(one.seconds, one.cost_usd, None, counts=False) for one in paid or ()]
    points = curve([*other, *events], start=0.0)
    return ComparedRun(
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
    """Return the ideas; an idea that was tried on several nodes has its best outcome."""
    keys = {idea.path: idea.key for node in run.manifest.nodes.values() for idea in node.ideas}
    found: dict[str, Tried] = {}
    for one in run.manifest.evaluations.values():
        key = keys.get(one.idea_path, one.idea_sha256)
        outcome = one.decision.fate if one.decision else one.status
        if key not in found or outcome == "promoted":
            found[key] = Tried(key, run.facts.title(one), outcome)
    return list(found.values())


def _proof(run: ProofRun, name: str) -> ComparedRun:
    events: list[Spending] = []
    before = 0.0
    for goal in run.facts.goals:
        last = len(goal.iterations) - 1
        for index, turn in enumerate(goal.iterations):
            closed = 1.0 if index == last and goal.status == "proved" else None
            events.append(Spending(before + turn.elapsed, None, closed))
        before += goal.seconds
    points = curve(events, start=0.0, adds=True)
    tried = [Tried("\n".join(key_of(goal)), goal.name, goal.status) for goal in run.facts.goals]
    return ComparedRun(
        name, str(run.path), run.run_id, float(run.proved), None, points, tuple(tried),
        len(run.facts.iterations), before, None, run.is_finished,
    )  # fmt: skip


def _search(run: SearchRun, name: str) -> ComparedRun:
    history = run.history
    higher = history.settings.direction == "maximize"
    events = [
        Spending(run.seconds(at), None, node.score if (node := history.nodes.get(number)) else None)
        for number, at in run.outcomes()
    ]
    points = curve(events, higher=higher, start=history.root.score)
    best = history.best
    return ComparedRun(
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
    """Return short names of runs; equal names become the differing parts of the paths."""
    above = os.path.commonpath([path.absolute().parent for path in paths])
    found = [
        os.path.relpath(path.absolute(), above) if names.count(name) > 1 else name
        for name, path in zip(names, paths, strict=True)
    ]
    return found if len(set(found)) == len(found) else [str(path) for path in paths]


def compare_with_first(
    names: tuple[str, str], run: Run, first: Run, notes: list[str]
) -> list[Difference]:
    """Return the paired differences of `run` against `first`.

    Args:
        names: The names of `run` and of `first`.
        notes: Gets a note for each comparison that is not possible.
    """
    if isinstance(run, TreeRun) and isinstance(first, TreeRun):
        return _commits(names, run, first, notes)
    if isinstance(run, ProofRun) and isinstance(first, ProofRun):
        return _goals(names, run, first)
    assert isinstance(run, SearchRun)
    assert isinstance(first, SearchRun)
    return _states(names, run, first, notes)


def _commits(
    names: tuple[str, str], run: TreeRun, first: TreeRun, notes: list[str]
) -> list[Difference]:
    """Compare the best commits of two runs, metric by metric, on their common configs."""
    simulated = [n for n, one in zip(names, (run, first), strict=True) if one.manifest.dry_run]
    notes += [f"{name} is a dry run: its scores are simulated" for name in simulated]
    if len(simulated) == 1:
        return []  # simulated and measured results cannot be compared
    notes += [
        note for n, one in zip(names, (run, first), strict=True) for note in _unchecked(n, one)
    ]
    if run.manifest.root_commit != first.manifest.root_commit:
        notes.append(
            f"{names[0]} and {names[1]} began from different commits: their scores are against "
            "different roots; the paired differences are of the commits themselves"
        )
    ours, theirs = (_metrics(one) for one in (run, first))
    directions = {(metric.name, metric.direction) for metric in theirs}
    same = [metric for metric in ours if (metric.name, metric.direction) in directions]
    if not same:
        notes.append(f"{names[0]} and {names[1]} have no metric in common")
        return []
    sides = [_sweeps(one, _metrics(one), notes) for one in (run, first)]
    found = _measured(names, same, sides, run.manifest.seed) if all(sides) else []
    if all(sides) and not found:
        notes.append(f"{names[0]} and {names[1]} were swept on no config in common")
    # Held-out results are not biased by the choice of the best.
    unseen: list[list[Results]] = []
    for one in (run, first):
        data = _recorded(one.path, best_node(one.manifest).artifacts.heldout)
        unseen.append([objectives.read(data, _metrics(one))] if data is not None else [])
    if all(unseen):
        found += _measured(names, same, unseen, run.manifest.seed, ", held-out configs")
    return found


def _unchecked(name: str, run: TreeRun) -> list[str]:
    """Say where an exact comparison rests on a number that may depend on random numbers."""
    if run.manifest.dry_run or not any(m.primary and m.deterministic for m in _metrics(run)):
        return []
    check = run.manifest.noise_check
    if isinstance(check, Unset):
        return [f"{name}: that its metric is deterministic was not checked with other seeds"]
    if check.other_seed == check.perturbed == "same":
        return []
    why = f" ({check.note})" if check.note else ""
    return [f"{name}: whether its metric depends on random numbers was tried only in part{why}"]


def _measured(
    names: tuple[str, str],
    metrics: list[MetricConfig],
    sides: Sequence[Sequence[Results]],
    seed: int,
    where: str = "",
) -> list[Difference]:
    """Return the differences by metric, on the configs that are sound on both sides."""
    rounds = [(before, after) for after, before in zip(*sides, strict=False)]
    pairs = sorted(set.intersection(*(r.sound_ids for both in rounds for r in both)))
    found: list[Difference] = []
    for metric in metrics:
        compared = scoring.compare_metric(metric, rounds, pairs, seed)
        if compared.gain is None:
            continue
        low, high = compared.gain_low, compared.gain_high
        interval = (low, high) if low is not None and high is not None else None
        what, gain = f"{metric.name}{where}", compared.gain
        found.append(difference(what, names, len(pairs), gain, interval, metric.tolerance))
    return found


def _metrics(run: TreeRun) -> list[MetricConfig]:
    """Return the recorded metrics. Other settings may be of another version."""
    try:
        return msgspec.convert(run.manifest.agent_config.get("metrics", []), list[MetricConfig])
    except msgspec.ValidationError as error:
        raise UsageError(f"{run.path}: its recorded metrics cannot be read: {error}") from None


def _sweeps(run: TreeRun, metrics: list[MetricConfig], notes: list[str]) -> list[Results]:
    """Return the sweeps of a run's best commit, if the file has the recorded checksum."""
    node = best_node(run.manifest)
    data = _recorded(run.path, node.artifacts.baseline)
    if data is None:
        notes.append(f"{run.run_id}: the results of {node.node_id} are missing or were changed")
        return []
    repeats = max(metric.repeats or 1 for metric in metrics)
    if node.parent_node_id is None:
        repeats = 1
    parts = [Part(repeat=number) for number in range(1, repeats + 1)]
    return [objectives.read(data, metrics, part=part) for part in parts]


def _recorded(run_dir: Path, kept: Artifact | None) -> bytes | None:
    if kept is None:
        return None
    try:
        data = untrusted.read(run_dir / kept.path, untrusted.LARGEST_RESULTS, run_dir)
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == kept.sha256 else None


def _goals(names: tuple[str, str], run: ProofRun, first: ProofRun) -> list[Difference]:
    """Compare the common goals: the share that is proved, and the simulations of proved goals."""

    ours, theirs = (
        {key_of(goal): (goal.status == "proved", len(goal.iterations)) for goal in one.facts.goals}
        for one in (run, first)
    )
    both = [key for key in theirs if key in ours]
    closed = [float(ours[key][0]) - float(theirs[key][0]) for key in both]
    fewer = [
        float(theirs[key][1] - ours[key][1]) for key in both if ours[key][0] and theirs[key][0]
    ]
    return [
        difference(what, names, len(deltas), paired.mean(deltas), paired.interval(deltas, 0))
        for what, deltas in (("share of goals proved", closed), ("simulations saved", fewer))
        if deltas
    ]


def _states(
    names: tuple[str, str], run: SearchRun, first: SearchRun, notes: list[str]
) -> list[Difference]:
    """Compare the best states of two searches, if their scores are by config."""
    ours, theirs = run.history.best, first.history.best
    direction = run.history.settings.direction
    if direction != first.history.settings.direction:
        notes.append(f"{names[0]} and {names[1]} search in different directions")
        return []
    if ours is None or theirs is None or ours.scores is None or theirs.scores is None:
        return []  # single numbers are in the table
    try:
        compared = scores.compare(ours, theirs, direction)
    except UsageError as error:
        notes.append(f"{names[0]} and {names[1]}: {error}")
        return []
    interval = None
    if compared.low is not None and compared.high is not None:
        interval = (compared.low, compared.high)
    return [difference("score", names, compared.pairs, compared.gain, interval)]


def key_of(goal: GoalFacts) -> tuple[str, str]:
    """Return the identity of a goal: name and statement."""
    return goal.name, goal.opened.statement if goal.opened else ""
