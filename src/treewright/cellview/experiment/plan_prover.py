"""The planned runs of an experiment as real proof runs, with one Lean session for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from treewright.cellview.experiment.plan import Plan, PlannedRun, search_settings
from treewright.cellview.experiment.results import MeasuredRun, measure_run
from treewright.lean.processes import LeanProcesses
from treewright.proving import layout
from treewright.proving.prover import Prover
from treewright.proving.run import create, make_lean_record, open_run, read_git_record
from treewright.proving.settings import StatementTarget
from treewright.proving.tactics.factory import build_source


@dataclass(frozen=True, slots=True)
class PlanProver:
    """Makes or resumes a planned run."""

    plan: Plan
    lean: LeanProcesses
    stop_asked: Callable[[], bool] = lambda: False
    force: bool = False

    def __call__(self, planned: PlannedRun, directory: Path) -> MeasuredRun | None:
        if self.stop_asked():
            return None
        settings = search_settings(self.plan, planned)
        if not (directory / layout.RUN).exists():
            lean = make_lean_record(self.lean.kept_session().info)
            git = read_git_record(Path.cwd())
            create(directory, StatementTarget(planned.goal.statement), settings, lean, git)
        with open_run(directory, force=self.force) as run:
            prover = Prover(run, self.lean, build_source(settings), self.stop_asked)
            result = prover.prove()
        return measure_run(planned, directory) if result.complete else None
