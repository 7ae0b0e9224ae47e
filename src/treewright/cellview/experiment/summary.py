"""Writes what an experiment has shown so far: `results.csv`, `report.md`, `plots/`. Derived."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import msgspec

from treewright.cellview.experiment import comparisons, tables
from treewright.cellview.experiment.layout import RESULTS
from treewright.cellview.experiment.plan import Plan, PlannedRun, runs_of
from treewright.cellview.experiment.plots import pictures
from treewright.cellview.experiment.results import MeasuredRun
from treewright.kernel.storage import atomic
from treewright.proving.report.writer import write_files

_DAMAGE = """\
Each arm against the undamaged runs of the same goal, seed and number of agents. *Retained* is the
share of what the undamaged search solved that this one solved too; ratios are geometric means over
pairs that both solved; p is McNemar's exact test. Intervals are of 95 %."""
_CENTRAL = """\
The undamaged distributed runs (after) against the centralized ones (before), paired by goal and
seed."""


def write_summary(plan: Plan, results: Mapping[str, MeasuredRun], directory: Path) -> Path:
    """Returns the path of the report."""
    atomic.sweep_temporaries(directory)
    atomic.write_if_changed(directory / RESULTS, as_csv(plan, results))
    groups = comparisons.groups_of(plan, results)
    curves = comparisons.curves(plan, groups)
    parts = [
        tables.headline(plan, results),
        tables.groups(plan, groups) if groups else "",
        tables.comparisons("Under damage", _DAMAGE, comparisons.under_damage(groups)),
        tables.comparisons(
            "Distributed against centralized", _CENTRAL, comparisons.against_centralized(groups)
        ),
        tables.doses(curves),
        tables.unproved(plan, results),
    ]
    text = "\n\n".join(part for part in parts if part) + "\n"
    return write_files(directory, text, pictures(plan.name, groups, curves))


def as_csv(plan: Plan, results: Mapping[str, MeasuredRun]) -> str:
    """A row per finished run: the factors, then the measures."""
    written = io.StringIO()
    measures = [name for name in MeasuredRun.__struct_fields__ if name != "cell_id"]
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([*_FACTORS, *measures])
    for planned in runs_of(plan):
        result = results.get(planned.cell_id)
        if result is not None:
            values = msgspec.structs.asdict(result)
            writer.writerow([*_factors(planned), *(_written(values[name]) for name in measures)])
    return written.getvalue()


_FACTORS = ("cell_id", "goal", "seed", "mode", "agents", "intervention", "block_fraction")


def _factors(planned: PlannedRun) -> list[object]:
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


def _written(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return int(value)
    return f"{value:.6g}" if isinstance(value, float) else value
