"""Compare runs: their results over time, and whether the best of one is better. Pure.

A `ComparedRun` has the curve of its best result by evaluations, seconds and dollars, and its ideas
or goals. `compared_runs` reads runs; `comparison_views` and the dashboard display comparisons. The
records are the document of `treewright compare --json` (docs/compare.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import msgspec

FORMAT_VERSION = 1
Kind = Literal["tree", "proof", "search"]
Axis = Literal["evaluations", "seconds", "cost_usd"]
AXES: tuple[Axis, ...] = ("evaluations", "seconds", "cost_usd")


class Point(msgspec.Struct, frozen=True):
    """The best result after some evaluations, seconds and dollars.

    `cost_usd` is None if no cost is recorded.
    """

    evaluations: int
    seconds: float
    best: float
    cost_usd: float | None = None

    def spent(self, axis: Axis) -> float | None:
        """Return the amount on an axis."""
        return getattr(self, axis)


class Tried(msgspec.Struct, frozen=True):
    """An idea, or a goal to prove. Equal keys in two runs mean the same idea or goal."""

    key: str
    title: str
    outcome: str


class ComparedRun(msgspec.Struct, frozen=True):
    """One run. Along `points`, all amounts increase and `best` never gets worse.

    `best` is a tree run's highest score against its root, a search's best score, or the number of
    goals that a proof run has proved; `better` says in which direction that is better.
    """

    name: str
    path: str
    run_id: str
    best: float | None
    best_id: str | None
    points: tuple[Point, ...]
    tried: tuple[Tried, ...]
    evaluations: int
    seconds: float
    cost_usd: float | None
    is_finished: bool
    better: Literal["higher", "lower"] = "higher"


class AtEqual(msgspec.Struct, frozen=True):
    """The best result of each run after the amount that the cheapest run spent."""

    axis: Axis
    amount: float
    best: dict[str, float | None]


class Shared(msgspec.Struct, frozen=True):
    """An idea or goal of several runs, with its outcome in each."""

    title: str
    outcomes: dict[str, str]


class Difference(msgspec.Struct, frozen=True):
    """How much better `run` is than `against`, over common measurements; positive is better.

    Without an interval (fewer than two pairs) the verdict is unknown. `verdict`: `better`, `worse`,
    `no_difference`, `unknown`.
    """

    what: str
    run: str
    against: str
    pairs: int
    difference: float
    low: float | None
    high: float | None
    verdict: Literal["better", "worse", "no_difference", "unknown"]


class Comparison(msgspec.Struct, frozen=True):
    """The result of `treewright compare`. `notes` explain comparisons that are not possible."""

    kind: Kind
    runs: tuple[ComparedRun, ...]
    at_equal: tuple[AtEqual, ...]
    shared: tuple[Shared, ...]
    alone: dict[str, tuple[Tried, ...]]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
    format_version: int = FORMAT_VERSION

    def __str__(self) -> str:
        from treewright.runs.comparison_views import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from treewright.runs.comparison_views import as_html

        return as_html(self)


def build_comparison(
    kind: Kind,
    runs: Sequence[ComparedRun],
    differences: Sequence[Difference] = (),
    notes: Sequence[str] = (),
) -> Comparison:
    """Return the comparison of runs of one kind, with the differences that were measured."""
    shared, alone = shared_and_alone(runs)
    return Comparison(
        kind,
        tuple(runs),
        tuple(found for axis in AXES if (found := at_equal(runs, axis)) is not None),
        shared,
        alone,
        tuple(differences),
        tuple(notes),
    )


def at_equal(runs: Sequence[ComparedRun], axis: Axis) -> AtEqual | None:
    """Return the comparison at equal spending, or None if a run has spent nothing on the axis."""
    totals = [run.points[-1].spent(axis) if run.points else None for run in runs]
    spent = [total for total in totals if total]
    if len(spent) < len(runs):
        return None
    amount = min(spent)
    return AtEqual(axis, amount, {run.name: best_at(run, axis, amount) for run in runs})


def best_at(run: ComparedRun, axis: Axis, amount: float) -> float | None:
    """Return the best result of a run after an amount, or None without a result."""
    found = None
    for point in run.points:
        spent = point.spent(axis)
        if spent is None or spent > amount:
            break
        found = point.best
    return found


def shared_and_alone(
    runs: Sequence[ComparedRun],
) -> tuple[tuple[Shared, ...], dict[str, tuple[Tried, ...]]]:
    """Return the entries that several runs tried, and for each run the entries of this run only."""
    by_run: dict[str, dict[str, Tried]] = {
        run.name: {tried.key: tried for tried in run.tried} for run in runs
    }
    counts: dict[str, int] = {}
    for tried in by_run.values():
        for key in tried:
            counts[key] = counts.get(key, 0) + 1
    shared: list[Shared] = []
    for key in (key for key, count in counts.items() if count > 1):
        found = {name: tried[key] for name, tried in by_run.items() if key in tried}
        title = next(iter(found.values())).title
        shared.append(Shared(title, {name: one.outcome for name, one in found.items()}))
    alone = {
        name: tuple(one for key, one in tried.items() if counts[key] == 1)
        for name, tried in by_run.items()
    }
    return tuple(shared), alone


def difference(
    what: str,
    names: tuple[str, str],
    pairs: int,
    gain: float,
    interval: tuple[float, float] | None,
    tolerance: float = 0.0,
) -> Difference:
    """Return a difference with its verdict. `names` are the run and the run it is compared with."""
    verdict: Literal["better", "worse", "no_difference", "unknown"] = "unknown"
    low, high = interval if interval is not None else (None, None)
    if low is not None and high is not None:
        better, worse = low > 0 and gain > tolerance, high < 0 and gain < -tolerance
        verdict = "better" if better else "worse" if worse else "no_difference"
    return Difference(what, *names, pairs, gain, low, high, verdict)


class Spending(NamedTuple):
    """The end of one evaluation: its time, cost and result.

    If `counts` is false, it is a payment without an evaluation. An unknown price is None.
    """

    seconds: float
    cost_usd: float | None
    found: float | None
    counts: bool = True


def curve(
    events: Iterable[Spending],
    *,
    higher: bool = True,
    start: float | None = None,
    adds: bool = False,
) -> tuple[Point, ...]:
    """Return the best result after each evaluation and at the end.

    Args:
        events: The evaluations and payments.
        higher: Whether a higher result is better.
        start: The result before the first evaluation.
        adds: Whether results are summed up.

    Points have a cost only if every event has a price.
    """
    ordered = sorted(events, key=lambda event: event.seconds)
    priced = bool(ordered) and all(event.cost_usd is not None for event in ordered)
    count, cost = 0, 0.0 if priced else None
    best = start
    points = [Point(0, 0.0, best, cost)] if best is not None else []
    for event in ordered:
        count += event.counts
        if cost is not None:
            cost += event.cost_usd or 0.0
        if event.found is not None:
            if adds:
                best = (best or 0.0) + event.found
            elif best is None or (event.found > best if higher else event.found < best):
                best = event.found
        if best is not None and (event.counts or event is ordered[-1]):
            points.append(Point(count, event.seconds, best, cost))
    return tuple(points)
