"""A comparison as pictures: what was best against evaluations, time and cost. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from treewright.proving.report.charts import Series, line_chart
from treewright.runs.columns import Columns, Picture, page
from treewright.runs.comparison import AXES, Axis, Comparison

_AXES: dict[Axis, str] = {"evaluations": "evaluations", "seconds": "seconds", "cost_usd": "USD"}
_STYLES = 5


def charts(comparison: Comparison) -> dict[Axis, Picture]:
    """One chart for each axis on which every run has spent something."""
    best = "goals proved" if comparison.kind == "proof" else "best found"
    drawn: dict[Axis, Picture] = {}
    for axis in AXES:
        series = [
            Series(run.name, list(_points(comparison, index, axis)), index % _STYLES, steps=True)
            for index, run in enumerate(comparison.runs)
        ]
        if all(any(x > 0 for x, _ in one.points) for one in series):
            label = "simulations" if (comparison.kind, axis) == ("proof", AXES[0]) else _AXES[axis]
            names = " and ".join(run.name for run in comparison.runs)
            title = f"{best} by {label}: {names}"
            whole = axis == "evaluations"
            drawn[axis] = Picture(line_chart(title, series, label, best, whole_x=whole))
    return drawn


def as_html(comparison: Comparison) -> str:
    """For notebooks and files: charts, and the differences as a table."""
    shown = {
        run.name: f"best {run.best}, {run.evaluations:,} evaluations, {run.seconds:.3g} s"
        for run in comparison.runs
    }
    names = ("what", "run", "against", "pairs", "difference", "low", "high", "verdict")
    rows = [[getattr(one, name) for name in names] for one in comparison.differences]
    table = Columns.of(names, rows)._repr_html_() if rows else ""
    return page("comparison", shown, *charts(comparison).values()) + table


def _points(comparison: Comparison, index: int, axis: Axis) -> Iterator[tuple[float, float]]:
    for point in comparison.runs[index].points:
        spent = point.spent(axis)
        if spent is not None:
            yield float(spent), point.best
