"""Experiments with real Lean: one session for all cells; a stopped one goes on to the same end."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.here import LentLean
from treewright.cellview.experiment.execution import run_experiment
from treewright.cellview.experiment.plan import load
from treewright.cellview.experiment.plan_prover import PlanProver
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.processes import LeanProcesses
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.proving.trace import read_trace, without_clock

pytestmark = pytest.mark.xdist_group("lean-session")

PLAN = """
modes = ["distributed"]
agents = [2]
simulations = 40
batch = 1

[cells]
algotypes = "ucb,depth_first"

[[interventions]]
name = "block"
block_fraction = 0.5
block_duration = 3

[[goals]]
name = "swap"
statement = "∀ p q r : Prop, p ∧ q → (r → q ∧ p)"

[[goals]]
name = "wrong"
statement = "∀ n : Nat, n < nothing"
"""


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "small.toml"
    path.write_text(PLAN, "utf-8")
    return path


def traces(directory: Path) -> dict[str, object]:
    return {
        path.parent.name: without_clock(read_trace(path))
        for path in sorted(directory.glob("cells/*/trace.jsonl"))
    }


def test_real_runs_and_going_on(
    home: LeanHome, replayer: Replayer, plan_file: Path, tmp_path: Path
) -> None:
    started: list[HostSession] = []
    stop_after = [10**9]

    def start() -> HostSession:
        started.append(HostSession(home))
        return started[-1]

    def stop_asked() -> bool:
        stop_after[0] -= 1
        return stop_after[0] < 0

    plan = load(plan_file)
    lean = LentLean(start, replayer)
    prover = PlanProver(plan, cast("LeanProcesses", lean), stop_asked)
    whole = run_experiment(plan, tmp_path / "whole", prover)
    stop_after[0] = 2
    stopped = run_experiment(plan, tmp_path / "stopped", prover)
    begun = list(tmp_path.glob("stopped/cells/*"))
    stop_after[0] = 10**9
    continued = run_experiment(plan, tmp_path / "stopped", prover)
    assert len(started) == 1, "one session for everything"
    started[0].close()

    assert (whole.complete, whole.total, whole.solved) == (True, 4, 2)
    assert whole.report.read_text("utf-8").count(r"ill\_typed") == 2
    for cell in (tmp_path / "whole" / "cells").iterdir():
        for name in ("run.json", "trace.jsonl", "result.json", "cell.json", "report.md"):
            assert (cell / name).is_file(), name

    assert not stopped.complete
    assert len(begun) < 4
    assert continued.complete
    assert traces(tmp_path / "stopped") == traces(tmp_path / "whole")
