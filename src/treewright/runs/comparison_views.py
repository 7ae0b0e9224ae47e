"""A comparison as text for a terminal, and as charts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treewright.kernel.text import numbers
from treewright.kernel.text.charts import Series, line_chart
from treewright.runs.columns import Columns, Picture, page
from treewright.runs.comparison import AXES, Axis, ComparedRun, Comparison, Difference

MAX_LISTED = 10
_BEST = {"tree": "best score", "proof": "goals proved", "search": "best score"}
_SPENT = {"tree": "evaluations", "proof": "simulations", "search": "evaluations"}
_TRIED = {"tree": "ideas", "proof": "goals"}
_VERDICTS = {
    "better": "better",
    "worse": "worse",
    "no_difference": "no difference beyond noise",
    "unknown": "unknown: too few pairs",
}


def as_text(comparison: Comparison) -> str:
    """Return a comparison as text, with an empty line between sections."""
    sections = [
        _table(comparison),
        _differences(comparison.differences),
        _tried(comparison),
        (f"note: {note}" for note in comparison.notes),
    ]
    texts = ["\n".join(lines) for lines in sections]
    return "\n\n".join(text for text in texts if text)


def _table(comparison: Comparison) -> Iterator[str]:
    kind = comparison.kind
    spent = _SPENT[kind]

    def cost(dollars: float | None) -> str:
        return "–" if dollars is None else f"${dollars:.4g}"

    def best(run: ComparedRun, value: float | None) -> str:
        """Return a result with its node, if it is the best of the run."""
        shown = numbers.percent(value) if kind == "tree" else numbers.value(value)
        return f"{shown} {run.best_id}" if value == run.best and run.best_id else shown

    amounts = {
        "evaluations": lambda amount: f"{amount:,.0f} {spent}",
        "seconds": numbers.seconds,
        "cost_usd": cost,
    }
    titles = ["run", _BEST[kind], spent, "time", "cost"]
    titles += [f"after {amounts[one.axis](one.amount)}" for one in comparison.at_equal]
    rows = [titles]
    for run in comparison.runs:
        row = [
            run.name + ("" if run.is_finished else " (not finished)"),
            best(run, run.best),
            f"{run.evaluations:,}",
            numbers.seconds(run.seconds),
            cost(run.cost_usd),
        ]
        rows.append(row + [best(run, one.best[run.name]) for one in comparison.at_equal])
    widths = [max(len(row[column]) for row in rows) for column in range(len(titles))]
    for row in rows:
        first = f"{row[0]:<{widths[0]}}"
        yield "  ".join([first, *(f"{c:>{w}}" for c, w in zip(row[1:], widths[1:], strict=True))])


def _differences(differences: Sequence[Difference]) -> Iterator[str]:
    if differences:
        yield "paired differences of the best (positive: the first run is better):"
    for one in differences:
        gain = numbers.gain(one.difference, one.low, one.high)
        pairs = numbers.count(one.pairs, "pair")
        yield (
            f"  {one.run} against {one.against}, {one.what}: {gain} over {pairs}: "
            f"{_VERDICTS[one.verdict]}"
        )


def _tried(comparison: Comparison) -> Iterator[str]:
    noun = _TRIED.get(comparison.kind)
    if noun is None:
        return
    alone = ", ".join(f"{len(tried)} only in {name}" for name, tried in comparison.alone.items())
    yield f"{noun}: {len(comparison.shared)} shared, {alone}"
    other = [one for one in comparison.shared if len(set(one.outcomes.values())) > 1]
    for one in other[:MAX_LISTED]:
        outcomes = ", ".join(f"{name}: {outcome}" for name, outcome in one.outcomes.items())
        yield f"  {one.title}: {outcomes}"
    if len(other) > MAX_LISTED:
        yield f"  and {len(other) - MAX_LISTED} more with different outcomes; --json has all"


_AXES: dict[Axis, str] = {"evaluations": "evaluations", "seconds": "seconds", "cost_usd": "USD"}
_STYLES = 5


def charts(comparison: Comparison) -> dict[Axis, Picture]:
    """Return a chart for each axis on which every run has spent something."""
    best = "goals proved" if comparison.kind == "proof" else "best found"
    drawn: dict[Axis, Picture] = {}
    for axis in AXES:
        series: list[Series] = []
        for index, run in enumerate(comparison.runs):
            spent = [(point.spent(axis), point.best) for point in run.points]
            points = [(float(x), best_so_far) for x, best_so_far in spent if x is not None]
            series.append(Series(run.name, points, index % _STYLES, steps=True))
        if all(any(x > 0 for x, _ in one.points) for one in series):
            label = "simulations" if (comparison.kind, axis) == ("proof", AXES[0]) else _AXES[axis]
            names = " and ".join(run.name for run in comparison.runs)
            title = f"{best} by {label}: {names}"
            whole = axis == "evaluations"
            drawn[axis] = Picture(line_chart(title, series, label, best, whole_x=whole))
    return drawn


def as_html(comparison: Comparison) -> str:
    """Return HTML for notebooks and files: charts, and the differences as a table."""
    shown = {
        run.name: f"best {run.best}, {run.evaluations:,} evaluations, {run.seconds:.3g} s"
        for run in comparison.runs
    }
    names = ("what", "run", "against", "pairs", "difference", "low", "high", "verdict")
    rows = [[getattr(one, name) for name in names] for one in comparison.differences]
    table = Columns.of(names, rows)._repr_html_() if rows else ""
    return page("comparison", shown, *charts(comparison).values()) + table
