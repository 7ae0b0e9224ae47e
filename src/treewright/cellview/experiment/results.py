"""The measures of one run of an experiment, kept as `cell.json` in its directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from treewright.cellview.experiment.layout import CELL
from treewright.cellview.experiment.plan import PlannedRun
from treewright.cellview.measures import Trial, trial_of
from treewright.kernel.errors import StorageError
from treewright.kernel.storage import atomic
from treewright.kernel.text import jsontext
from treewright.proving import layout
from treewright.proving.measures.aggregation import aggregation
from treewright.proving.measures.gratification import gratification, root_series
from treewright.proving.records import GoalStatus
from treewright.proving.report.facts import GoalFacts, by_goal
from treewright.proving.trace import read_trace


class MeasuredRun(msgspec.Struct, frozen=True):
    """The measures of a finished proof run. It is solved if its proof passed the replay check."""

    cell_id: str
    status: GoalStatus
    stop: str
    detail: str
    solved: bool
    steps: int
    attempts: int
    seconds: float
    lean_seconds: float
    dips: int
    gain_over_dip: float | None
    neighbours: int
    alike: float | None
    alike_by_chance: float | None
    alike_z: float | None
    alike_p: float | None

    def trial(self, planned: PlannedRun) -> Trial:
        """Return the run as a trial, for comparisons."""
        return Trial(planned.goal.name, planned.seed, self.solved, self.steps, self.attempts)


def measure_run(planned: PlannedRun, run_dir: Path) -> MeasuredRun | None:
    """Return the measures from the trace of a run; None while it has no verdict."""
    goals = by_goal(read_trace(run_dir / layout.TRACE))
    if not goals or goals[0].verdict is None:
        return None
    return _measured(planned, goals[0])


def _measured(planned: PlannedRun, goal: GoalFacts) -> MeasuredRun:
    verdict = goal.verdict
    assert verdict is not None
    trial = trial_of(planned.goal.name, planned.seed, goal.iterations)
    dips = gratification(root_series(goal.iterations), seed=planned.seed)
    labels = aggregation(goal.iterations, seed=planned.seed)
    return MeasuredRun(
        cell_id=planned.cell_id,
        status=verdict.status,
        stop=verdict.stop,
        detail=verdict.detail,
        solved=verdict.status == "proved",
        steps=trial.steps,
        attempts=trial.attempts,
        seconds=round(goal.seconds, 3),
        lean_seconds=round(goal.lean_seconds, 3),
        dips=len(dips.excursions),
        gain_over_dip=dips.ratio,
        neighbours=labels.pairs,
        alike=labels.share,
        alike_by_chance=labels.null_mean,
        alike_z=labels.z,
        alike_p=labels.p,
    )


def write_result(directory: Path, result: MeasuredRun) -> None:
    """Write `cell.json`."""
    atomic.write_bytes(directory / CELL, msgspec.json.encode(result) + b"\n")


def read_result(directory: Path, planned: PlannedRun) -> MeasuredRun | None:
    """Return the measures of a run; None if the run is not finished."""
    path = directory / CELL
    try:
        return decode_result(path.read_bytes(), path, planned)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from None


def decode_result(data: bytes, path: Path, planned: PlannedRun) -> MeasuredRun:
    """Decode the measures of a run. Raises StorageError if they belong to another run."""
    try:
        result = jsontext.decode(data, type=MeasuredRun)
    except msgspec.DecodeError as error:
        raise StorageError(f"{path} is damaged ({error}); delete it to measure again") from None
    if result.cell_id != planned.cell_id:
        raise StorageError(f"{path} is of {result.cell_id}; delete it to make that run again")
    return result
