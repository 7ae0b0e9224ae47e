"""Experiments: killed at any sync they continue, finish the same, and run nothing twice."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from tests.cellview import experiment_driver as driver
from treewright.cellview.experiment import plan as plans
from treewright.cellview.experiment.execution import Progress, run_experiment
from treewright.cellview.experiment.plan import PlannedRun, runs_of
from treewright.cellview.experiment.results import MeasuredRun
from treewright.kernel.errors import LockActive, StorageError, UsageError
from treewright.kernel.storage.lease import Lease

ROOT = Path(__file__).parents[2]
PLAN = """
modes = ["centralized", "distributed"]
agents = [4]
seeds = [1, 2, 3]
simulations = 25

[[interventions]]
name = "block"
block_fraction = [0.25, 0.75]
block_duration = 5

[[interventions]]
name = "placebo"
block_fraction = 0.0

[[goals]]
name = "easy <1>"
statement = "4"

[[goals]]
name = "hard | 2"
statement = "6"
"""
DERIVED = ("results.csv", "report.md", "plots/solve_rate.svg", "plots/dose_solved_1.svg")


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "damage.toml"
    path.write_text(PLAN, "utf-8")
    return path


@pytest.fixture(scope="module")
def whole(plan_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of an experiment that nothing happened to."""
    directory = tmp_path_factory.mktemp("whole")
    outcome = run_experiment(plans.load(plan_file), directory, driver.make_run)
    assert outcome.complete
    assert (outcome.finished, outcome.total) == (30, 30)
    return directory


def spawn(directory: Path, plan_file: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", driver.__name__, str(directory), str(plan_file), *more]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )


def test_killed_again_and_again_it_ends_the_same(
    whole: Path, plan_file: Path, tmp_path: Path
) -> None:
    syncs = [1, 2, 3, 4, 7, 12, 19, 40, 61]
    for count in syncs:
        done = spawn(tmp_path, plan_file, str(count))
        assert done.returncode == -signal.SIGKILL, done.stderr
    done = spawn(tmp_path, plan_file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["30", "30"]
    for name in DERIVED:
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes(), name
    starts = [line.split() for line in (tmp_path / "starts.log").read_text().splitlines()]
    assert all(finished == "0" for _, _, finished in starts), "a finished cell was run again"
    assert len(starts) <= 30 + len(syncs)
    repeated = [cell for cell, count in Counter(cell for cell, _, _ in starts).items() if count > 1]
    assert repeated, "some cell was killed midway"
    for trace in tmp_path.glob("cells/*/trace.jsonl"):
        kinds = [msgspec.json.decode(line)["type"] for line in trace.read_bytes().splitlines()]
        assert kinds.count("goal") == kinds.count("verdict") == 1, "continued, not begun again"


def test_nothing_is_left_to_do_the_second_time(whole: Path, plan_file: Path) -> None:
    def refuse(cell: PlannedRun, directory: Path) -> MeasuredRun | None:
        raise AssertionError(cell.cell_id)

    seen: list[Progress] = []
    before = {path: path.stat().st_mtime_ns for path in whole.glob("*.*")}
    assert run_experiment(plans.load(plan_file), whole, refuse, seen.append).complete
    assert {path: path.stat().st_mtime_ns for path in whole.glob("*.*")} == before
    assert [progress.done for progress in seen] == list(range(1, 31))
    assert all(progress.earlier for progress in seen)


def test_progress_is_told_before_and_after(plan_file: Path, tmp_path: Path) -> None:
    plan = msgspec.structs.replace(plans.load(plan_file), seeds=(1,), modes=("centralized",))
    seen: list[Progress] = []
    run_experiment(plan, tmp_path, driver.make_run, seen.append)
    assert [(p.done, p.total, p.result is not None) for p in seen] == [
        (0, 2, False),
        (1, 2, True),
        (1, 2, False),
        (2, 2, True),
    ]


def test_a_stopped_experiment_reports_its_finished_runs(plan_file: Path, tmp_path: Path) -> None:
    left = [7]

    def make_run(cell: PlannedRun, directory: Path) -> MeasuredRun | None:
        left[0] -= 1
        return driver.make_run(cell, directory) if left[0] >= 0 else None

    outcome = run_experiment(plans.load(plan_file), tmp_path, make_run)
    assert (outcome.finished, outcome.complete) == (7, False)
    text = outcome.report.read_text("utf-8")
    assert "7 of 30" in text
    assert "not over" in text


def test_an_error_of_a_cell_ends_it_and_keeps_the_rest(plan_file: Path, tmp_path: Path) -> None:
    def broken(cell: PlannedRun, directory: Path) -> MeasuredRun | None:
        if cell.cell_id.startswith("0003"):
            raise UsageError("no Lean here")
        return driver.make_run(cell, directory)

    with pytest.raises(UsageError, match="no Lean here"):
        run_experiment(plans.load(plan_file), tmp_path, broken)
    assert len(list(tmp_path.glob("cells/*/cell.json"))) == 2
    assert run_experiment(plans.load(plan_file), tmp_path, driver.make_run).complete


def test_another_plan_is_refused_and_the_difference_named(whole: Path, plan_file: Path) -> None:
    plan = plans.load(plan_file)
    other = msgspec.structs.replace(plan, simulations=26)
    with pytest.raises(UsageError, match=r"`simulations` was 25, is now 26;"):
        run_experiment(other, whole, driver.make_run)
    longer = msgspec.structs.replace(plan, seeds=(1, 2, 3, 4))
    with pytest.raises(UsageError, match=r"`seeds\[3\]` was absent, is now 4"):
        run_experiment(longer, whole, driver.make_run)


def test_two_processes_do_not_run_one_experiment(plan_file: Path, tmp_path: Path) -> None:
    lease = Lease.acquire(tmp_path / "lease")
    try:
        with pytest.raises(LockActive):
            run_experiment(plans.load(plan_file), tmp_path, driver.make_run)
    finally:
        lease.release()


def test_a_damaged_result_is_named(whole: Path, plan_file: Path) -> None:
    result = min(whole.glob("cells/*/cell.json"))
    good = result.read_bytes()
    try:
        result.write_bytes(good[:20])
        with pytest.raises(StorageError, match=r"cell\.json is damaged .*delete it"):
            run_experiment(plans.load(plan_file), whole, driver.make_run)
        result.write_bytes(good.replace(b'"0001-', b'"0002-'))
        with pytest.raises(StorageError, match="is of 0002-"):
            run_experiment(plans.load(plan_file), whole, driver.make_run)
    finally:
        result.write_bytes(good)


def test_results_csv_has_a_row_per_cell(whole: Path, plan_file: Path) -> None:
    with (whole / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["cell_id"] for row in rows] == [c.cell_id for c in runs_of(plans.load(plan_file))]
    central = [row for row in rows if row["mode"] == "centralized"]
    assert {row["agents"] + row["block_fraction"] for row in central} == {""}
    assert {row["solved"] for row in rows} == {"0", "1"}


def test_the_report_compares_and_draws(whole: Path) -> None:
    text = (whole / "report.md").read_text("utf-8")
    for heading in ("## Groups", "## Under damage", "## Distributed against centralized"):
        assert heading in text
    assert "### block, 4 agents" in text
    placebo = next(line for line in text.splitlines() if "placebo (no damage)" in line)
    assert "| 0 / 0 | 1.000 |" in placebo, "no dose, no effect"
    assert "null control: undamaged runs with made-up doses" in text
    for name in ("solve_rate", "dose_solved_1", "dose_steps_1"):
        assert f"plots/{name}.svg" in text
        ElementTree.parse(whole / "plots" / f"{name}.svg")
