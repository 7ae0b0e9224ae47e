"""An experiment in the synthetic world, as a program: `DIRECTORY PLAN [KILL_AT]`.

With KILL_AT the process kills itself at that sync of a file: at odd ones before it, at even ones
after it. Every start of a cell is noted in `starts.log` with the state before it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tests.proving.traces import search
from treewright.cellview.experiment import plan as plans
from treewright.cellview.experiment.execution import run_experiment
from treewright.cellview.experiment.results import MeasuredRun, measure_run
from treewright.kernel.storage.lease import Lease
from treewright.proving.trace import TraceWriter, read_trace


def make_run(cell: plans.PlannedRun, directory: Path) -> MeasuredRun | None:
    """Continues the trace where it stops; the course of a search is known in advance here."""
    trace = directory / "trace.jsonl"
    known = len(read_trace(trace)) if trace.exists() else 0
    finished = int((directory / "cell.json").exists())
    with (directory.parents[1] / "starts.log").open("a") as log:
        log.write(f"{cell.cell_id} {known} {finished}\n")
    lines = search(
        int(cell.goal.statement) + 100 * cell.seed,
        name=cell.goal.name,
        limit=25,
        agents=cell.agents or 0,
        blocked=cell.arm.dose,
    )
    lease = Lease.acquire(directory / "lease", after=known and read_trace(trace)[-1].epoch)
    try:
        writer = TraceWriter(trace, lease.epoch, lease.check)
        for line in lines[known:]:
            writer.append([line], sync=line is lines[-1])
        writer.close()
    finally:
        lease.release()
    return measure_run(cell, directory)


def kill_at(count: int) -> None:
    real, seen = os.fsync, [0]

    def fsync(fd: int) -> None:
        seen[0] += 1
        if seen[0] == count and count % 2:
            os.kill(os.getpid(), signal.SIGKILL)
        real(fd)
        if seen[0] == count:
            os.kill(os.getpid(), signal.SIGKILL)

    os.fsync = fsync


if __name__ == "__main__":
    if len(sys.argv) > 3:
        kill_at(int(sys.argv[3]))
    outcome = run_experiment(plans.load(Path(sys.argv[2])), Path(sys.argv[1]), make_run)
    print(outcome.finished, outcome.total)
