"""Experiments on disk, run by the real runner in the synthetic world."""

from __future__ import annotations

from pathlib import Path

from tests.cellview import experiment_driver as driver
from treewright.cellview.experiment import plan as plans
from treewright.cellview.experiment.execution import run_experiment
from treewright.cellview.experiment.plan import PlannedRun
from treewright.cellview.experiment.results import MeasuredRun

HOSTILE = "<img src=x onerror='window.hacked = true'>"
PLAN = f"""
modes = ["centralized", "distributed"]
seeds = [1, 2, 3]
agents = [4]
simulations = 25
goals = [
  {{name = "easy", statement = "4"}},
  {{name = "{HOSTILE}", statement = "6"}},
  {{name = "third", statement = "9"}},
]
interventions = [{{name = "block", block_fraction = [0.25, 0.75], block_duration = 5}}]
"""


def experiment(project: Path, name: str = "damage", *, runs: int | None = None) -> Path:
    """Write all 36 runs, or the first runs and one that was started."""
    directory = project / ".treewright" / "experiments" / name
    plan = project / f"{name}.toml"
    plan.write_text(PLAN, "utf-8")

    def make(cell: PlannedRun, place: Path) -> MeasuredRun | None:
        found = driver.make_run(cell, place)
        number = int(cell.cell_id.partition("-")[0])
        return None if runs is not None and number > runs else found

    run_experiment(plans.load(plan), directory, make)
    return directory
