"""The report of an experiment: `results.csv`, `report.md` and `plots/`, derived from its runs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from treewright.cellview.experiment import comparisons, layout
from treewright.cellview.experiment.comparisons import Comparison, Curve, Group
from treewright.cellview.experiment.layout import RESULTS
from treewright.cellview.experiment.plan import Plan, PlannedRun, runs_of
from treewright.cellview.experiment.plots import pictures
from treewright.cellview.experiment.results import MeasuredRun
from treewright.cellview.measures import Trend
from treewright.kernel.storage import atomic
from treewright.kernel.text import numbers
from treewright.kernel.text.markdown import code, escape, table
from treewright.proving.measures.intervals import Estimate
from treewright.proving.report.writer import PLOTS, write_files

_DAMAGE = """\
Each arm against the undamaged runs of the same goal, seed and number of agents. *Retained* is the
share of what the undamaged search solved that this one solved too; ratios are geometric means over
pairs that both solved; p is McNemar's exact test. Intervals are of 95 %."""
_CENTRAL = """\
The undamaged distributed runs (after) against the centralized ones (before), paired by goal and
seed."""


def write_summary(plan: Plan, results: Mapping[str, MeasuredRun], directory: Path) -> Path:
    """Write the files of the report and return the path of its text."""
    atomic.sweep_temporaries(directory)
    atomic.write_if_changed(directory / RESULTS, results_csv(plan, results))
    groups = comparisons.groups_of(plan, results)
    curves = comparisons.curves(plan, groups)
    parts = [
        headline(plan, results),
        groups_table(plan, groups) if groups else "",
        comparison_table("Under damage", _DAMAGE, comparisons.under_damage(groups)),
        comparison_table(
            "Distributed against centralized", _CENTRAL, comparisons.against_centralized(groups)
        ),
        "## Dose and response" if curves else "",
        *(_curve(curve, number) for number, curve in enumerate(curves, 1)),
        unproved(plan, results),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return write_files(directory, text, pictures(plan.name, groups, curves))


def results_csv(plan: Plan, results: Mapping[str, MeasuredRun]) -> str:
    """Return a CSV row for each finished run: the factors, then the measures."""
    written = io.StringIO()
    measures = [name for name in MeasuredRun.__struct_fields__ if name != "cell_id"]
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([*_FACTORS, *measures])
    for planned in runs_of(plan):
        result = results.get(planned.cell_id)
        if result is not None:
            values = msgspec.structs.asdict(result)
            writer.writerow(
                [*_csv_factors(planned), *(_csv_value(values[name]) for name in measures)]
            )
    return written.getvalue()


_FACTORS = ("cell_id", "goal", "seed", "mode", "agents", "intervention", "block_fraction")


def _csv_factors(planned: PlannedRun) -> list[object]:
    agents = "" if planned.agents is None else planned.agents
    dose = "" if planned.agents is None else f"{planned.arm.dose:g}"
    return [
        planned.cell_id,
        planned.goal.name,
        planned.seed,
        planned.mode,
        agents,
        planned.arm.name,
        dose,
    ]


def _csv_value(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    return f"{value:.6g}" if isinstance(value, float) else value


def headline(plan: Plan, results: Mapping[str, MeasuredRun]) -> str:
    """Return the title and the table of the whole experiment."""
    total = len(runs_of(plan))
    rows = [
        ["runs finished", f"{len(results):,} of {total:,}"],
        ["modes", escape(", ".join(plan.modes))],
        ["agents", ", ".join(map(str, plan.agents)) or "–"],
        ["interventions", escape(", ".join(arm.name for arm in plan.arms))],
        ["seeds", escape(", ".join(map(str, plan.seeds)))],
        ["goals", f"{len(plan.goals):,}"],
        ["simulations allowed", f"{plan.simulations:,}"],
        ["time in searches", numbers.seconds(sum(r.seconds for r in results.values()))],
    ]
    text = f"# Experiment {escape(plan.name)}\n\n{table(('', ''), rows)}"
    if len(results) < total:
        text += "\n\nThe experiment is not over: what follows is about the finished runs."
    return text


def groups_table(plan: Plan, found: Sequence[Group]) -> str:
    """Return the table with a row for each mode, number of agents and arm."""
    header = (
        "setup", "intervention", "runs", "solve rate", "steps (unsolved at the limit)", "attempts",
        "gain over dip", "alike − chance",
    )  # fmt: skip
    rows = [
        [
            escape(group.setup),
            escape(group.arm.name),
            str(len(group.members)),
            share(group.solved()),
            estimate(group.steps(plan.simulations)),
            estimate(group.attempts()),
            estimate(group.gain_over_dip()),
            estimate(group.alike_beyond_chance()),
        ]
        for group in found
    ]
    picture = f"![Solve rates]({PLOTS}/{layout.SOLVE_RATES_PLOT})"
    return f"## Groups\n\n{table(header, rows, 'llrrrrrr')}\n\n{picture}"


def comparison_table(heading: str, words: str, found: Sequence[Comparison]) -> str:
    """Return the table of some comparisons; '' without any."""
    if not found:
        return ""
    header = (
        "setup", "intervention", "pairs", "solve rate before", "after", "difference", "retained",
        "steps ratio", "attempts ratio", "lost / won", "p",
    )  # fmt: skip
    rows = [
        [
            escape(one.group.setup),
            escape(one.group.arm.name + (" (no damage)" if one.group.arm.placebo else "")),
            str(one.found.pairs),
            share(one.found.undamaged),
            share(one.found.damaged),
            estimate(one.found.difference, signed=True),
            share(one.found.retained),
            estimate(one.found.steps_ratio),
            estimate(one.found.attempts_ratio),
            f"{one.found.lost} / {one.found.won}",
            probability(one.found.p),
        ]
        for one in found
    ]
    return f"## {heading}\n\n{words}\n\n{table(header, rows, 'llrrrrrrrrr')}"


def _curve(curve: Curve, number: int) -> str:
    rows = [
        [f"{level.dose:g}", str(level.trials), share(level.solved), estimate(level.steps)]
        for level in curve.found.levels
    ]
    control = curve.found.control
    if control.undefined is not None:
        checked = escape(control.undefined)
    else:
        false = 100 * (control.false_positives or 0.0)
        checked = (
            f"undamaged runs with made-up doses gave p ≤ 0.05 in {false:.1f} % of "
            f"{control.repetitions} repetitions, mean slope {short(control.mean_slope)}"
        )
    return "\n\n".join(
        [
            f"### {escape(curve.label)}, {curve.agents} agents",
            table(("block fraction", "runs", "solve rate", "mean steps"), rows, "rrrr"),
            f"- solve rate: {_trend(curve.found.solve_trend)}\n"
            f"- steps: {_trend(curve.found.steps_trend)}\n"
            f"- null control: {checked}",
            f"![Solve rate by dose]({PLOTS}/{layout.solved_plot(number)})",
            f"![Steps by dose]({PLOTS}/{layout.steps_plot(number)})",
        ]
    )


def _trend(found: Trend) -> str:
    if found.undefined is not None:
        return escape(found.undefined)
    blocks = numbers.count(found.blocks, "block")
    return f"slope {short(found.slope)} per unit of dose, p = {probability(found.p)} ({blocks})"


def unproved(plan: Plan, results: Mapping[str, MeasuredRun]) -> str:
    """Return a table of goals with an error, as opposed to hard goals."""
    rows = [
        [
            code(planned.cell_id),
            code(planned.goal.name),
            escape(result.status),
            escape(result.detail),
        ]
        for planned in runs_of(plan)
        if (result := results.get(planned.cell_id)) and result.status not in ("proved", "unproved")
    ]
    if not rows:
        return ""
    return f"## Neither proved nor merely unproved\n\n{table(('run', 'goal', 'status', ''), rows)}"


def short(number: float | None) -> str:
    """Return a number with three digits; a dash for none."""
    return "–" if number is None else f"{number:.3g}".replace("-", "−")


def probability(p: float | None) -> str:
    """Return a p-value as text; a dash for none."""
    return "–" if p is None else f"{p:.3f}"


def share(found: Estimate | None) -> str:
    """Return a rate as a percentage with its interval."""
    if found is None:
        return "–"
    bounds = ""
    if found.low is not None and found.high is not None:
        bounds = f" [{100 * found.low:.0f}, {100 * found.high:.0f}]"
    return f"{100 * found.value:.0f} %{bounds}"


def estimate(found: Estimate | None, *, signed: bool = False) -> str:
    """Return an estimate with its interval; a dash for none."""
    if found is None:
        return "–"
    centre = f"{found.value:+.3g}".replace("-", "−") if signed else short(found.value)
    return centre if found.low is None else f"{centre} [{short(found.low)}, {short(found.high)}]"
