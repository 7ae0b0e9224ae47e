"""Experiments with real Lean: one session for all cells; a stopped one goes on to the same end."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from treewright.lean.replay import Replayer
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.session import WasmSession
from treewright.mcts.experiment.plan import load
from treewright.mcts.experiment.proving import CellProver
from treewright.mcts.experiment.runner import Outcome, run_experiment
from treewright.mcts.trace import read_trace, without_clock

pytestmark = pytest.mark.xdist_group("lean-session")

PLAN = """
modes = ["distributed"]
agents = [2]
simulations = 12
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


class Bench:
    """Runs the experiment; counts the sessions that were started."""

    def __init__(self, home: LeanHome, replayer: Replayer, plan_file: Path) -> None:
        self._home, self._replayer = home, replayer
        self._plan = load(plan_file)
        self.sessions = 0

    def _start(self) -> WasmSession:
        self.sessions += 1
        return WasmSession(self._home)

    def run(self, directory: Path, stop_asked: Callable[[], bool] = lambda: False) -> Outcome:
        prover = CellProver(self._plan, self._start, self._replayer, stop_asked)
        with contextlib.closing(prover):
            return run_experiment(self._plan, directory, prover)


def traces(directory: Path) -> dict[str, object]:
    return {
        path.parent.name: without_clock(read_trace(path))
        for path in sorted(directory.glob("cells/*/trace.jsonl"))
    }


def test_real_runs_and_going_on(
    home: LeanHome, replayer: Replayer, plan_file: Path, tmp_path: Path
) -> None:
    bench = Bench(home, replayer, plan_file)
    whole = bench.run(tmp_path / "whole")
    assert (whole.complete, whole.total, whole.solved) == (True, 4, 2)
    assert bench.sessions == 1
    text = whole.report.read_text("utf-8")
    assert text.count(r"ill\_typed") == 2
    for cell in (tmp_path / "whole" / "cells").iterdir():
        for name in ("run.json", "trace.jsonl", "result.json", "cell.json", "report.md"):
            assert (cell / name).is_file(), name

    stopped = tmp_path / "stopped"
    asked = itertools.count()
    first = bench.run(stopped, lambda: next(asked) > 4)
    assert not first.complete
    assert any(not (cell / "cell.json").exists() for cell in (stopped / "cells").iterdir())
    assert bench.run(stopped).complete
    assert traces(stopped) == traces(tmp_path / "whole")
