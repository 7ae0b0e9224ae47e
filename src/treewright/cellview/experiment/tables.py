"""The text of an experiment's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from treewright.cellview.experiment import layout
from treewright.cellview.experiment.comparisons import Comparison, Curve, Group
from treewright.cellview.experiment.plan import Plan, runs_of
from treewright.cellview.experiment.results import MeasuredRun
from treewright.cellview.measures.dose import Trend
from treewright.kernel.text import numbers
from treewright.kernel.text.markdown import code, escape, table
from treewright.proving.measures.intervals import Estimate
from treewright.proving.report.writer import PLOTS


def headline(plan: Plan, results: Mapping[str, MeasuredRun]) -> str:
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


def groups(plan: Plan, found: Sequence[Group]) -> str:
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


def comparisons(heading: str, words: str, found: Sequence[Comparison]) -> str:
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


def doses(found: Sequence[Curve]) -> str:
    return "\n\n".join(["## Dose and response", *map(_curve, found, range(1, 1 + len(found)))]) if (
        found
    ) else ""  # fmt: skip


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
    """Goals that something is wrong with, rather than hard."""
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
    return "–" if number is None else f"{number:.3g}".replace("-", "−")


def probability(p: float | None) -> str:
    return "–" if p is None else f"{p:.3f}"


def share(found: Estimate | None) -> str:
    """As a percentage with its interval."""
    if found is None:
        return "–"
    bounds = ""
    if found.low is not None and found.high is not None:
        bounds = f" [{100 * found.low:.0f}, {100 * found.high:.0f}]"
    return f"{100 * found.value:.0f} %{bounds}"


def estimate(found: Estimate | None, *, signed: bool = False) -> str:
    if found is None:
        return "–"
    centre = f"{found.value:+.3g}".replace("-", "−") if signed else short(found.value)
    return centre if found.low is None else f"{centre} [{short(found.low)}, {short(found.high)}]"
