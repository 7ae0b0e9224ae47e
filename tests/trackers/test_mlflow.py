"""Runs in a real MLflow with a local file store: written once, twice, partly, and in progress."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import treewright as package
from tests.dashboard.samples import HOSTILE_TITLE
from tests.here import run_here
from tests.toy import CONFIG, ToyRepository
from tests.two_runs import search
from treewright.kernel.errors import MissingExtra, TreewrightError, UsageError
from treewright.trackers import mlflow
from treewright.trackers.tracked_run import track_run
from treewright.tree.records.layout import EVENTS, MANIFEST

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

pytestmark = pytest.mark.xdist_group("two-runs")
SAMPLES = Path(__file__).parents[1] / "proving" / "sample_runs"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "mlflow store").as_uri()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    return uri


@pytest.fixture
def client(store: str) -> MlflowClient:
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=store)


def write(run: Any) -> Any:
    loaded = package.load_run(run) if isinstance(run, Path) else run
    return mlflow.write(track_run(loaded), experiment="e")


def children(client: MlflowClient, written: Any) -> dict[str, Any]:
    wanted = f"tags.`mlflow.parentRunId` = '{written.run_id}'"
    found = client.search_runs([written.experiment_id], wanted)
    by_key = {run.data.tags["treewright.child"]: run for run in found}
    assert len(by_key) == len(found)
    return by_key


def files(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_a_search_and_its_evaluations_are_written(
    two_runs: ToyRepository, client: MlflowClient
) -> None:
    run = package.load_run(two_runs.run_dir("two"))
    assert isinstance(run, package.TreeRun)
    written = write(run)
    parent = client.get_run(written.run_id)
    assert parent.info.run_name == "two"
    assert parent.info.status == "FINISHED"
    assert parent.info.end_time >= parent.info.start_time
    assert parent.data.params["ideas_per_node"] == "8"
    assert parent.data.tags["treewright.best_commit"] == run.best["commit"]
    (point,) = client.get_metric_history(written.run_id, "best_score")
    assert (point.step, point.value) == (1, run.best["score"])
    found = children(client, written)
    assert len(found) == 8
    for row in run.evaluations.rows():
        child = found[row["eval_id"]]
        assert child.data.tags["treewright.fate"] == row["fate"]
        assert child.data.metrics.get("score") == row["score"]
        assert child.data.params["idea"] == row["idea"]
        assert child.info.status == ("FAILED" if row["error"] else "FINISHED")
    assert HOSTILE_TITLE in {child.data.params["idea"] for child in found.values()}


def test_writing_a_run_twice_has_no_effect(
    two_runs: ToyRepository, client: MlflowClient, tmp_path: Path
) -> None:
    first = write(two_runs.run_dir("one"))
    before = files(tmp_path / "mlflow store")
    again = write(two_runs.run_dir("one"))
    assert (again.run_id, again.children, again.points) == (first.run_id, 0, 0)
    assert files(tmp_path / "mlflow store") == before
    other = write(two_runs.run_dir("two"))
    assert other.run_id != first.run_id


def test_a_second_writer_completes_the_work_of_a_killed_one(
    two_runs: ToyRepository, client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.tracking import MlflowClient as Client

    with monkeypatch.context() as patch:
        patch.setattr(Client, "set_terminated", _killed)
        with pytest.raises(KeyboardInterrupt):
            write(two_runs.run_dir("one"))
    written = write(two_runs.run_dir("one"))
    found = children(client, written)
    assert len(found) == 3
    assert all(child.info.status != "RUNNING" for child in found.values())
    for child in found.values():
        for name in child.data.metrics:
            assert len(client.get_metric_history(child.info.run_id, name)) == 1, name


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_continued_run_updates_its_records(
    two_runs: ToyRepository, client: MlflowClient, tmp_path: Path
) -> None:
    copy = tmp_path / "early"
    shutil.copytree(two_runs.run_dir("one"), copy)
    (copy / MANIFEST).unlink()
    lines = (copy / EVENTS).read_bytes().splitlines(keepends=True)
    decided = next(i for i, line in enumerate(lines) if b'"type":"decided"' in line)
    (copy / EVENTS).write_bytes(b"".join(lines[:decided]))
    early = write(copy)
    assert client.get_run(early.run_id).info.status == "RUNNING"
    assert early.points == 0, "a depth counts when it is over"
    assert all("treewright.fate" not in c.data.tags for c in children(client, early).values())
    late = write(two_runs.run_dir("one"))
    assert late.run_id == early.run_id
    assert late.children == 3, "their fates came since"
    assert client.get_run(late.run_id).info.status == "FINISHED"
    assert all("treewright.fate" in c.data.tags for c in children(client, late).values())


def test_proof_runs_and_searches_are_written(client: MlflowClient, tmp_path: Path) -> None:
    proof = write(SAMPLES / "centralized")
    (goal,) = children(client, proof).values()
    assert goal.data.metrics["proved"] == 1
    assert goal.data.tags["treewright.status"] == "proved"
    with package.open_search(tmp_path / "s", budget=4, direction="minimize") as running:
        running.run(lambda task: float(-task.number))
    found = write(tmp_path / "s")
    assert [p.value for p in client.get_metric_history(found.run_id, "best_score")] == [
        -1.0, -2.0, -3.0, -4.0,
    ]  # fmt: skip
    assert len(children(client, found)) == 4


def test_a_notice_of_a_search_writes_to_mlflow(toy: ToyRepository, client: MlflowClient) -> None:
    command = f"{sys.executable} -m treewright mlflow - --experiment hooked"
    notice = f'command = "{command}"\nevents = ["depth_done"]\n'
    more = "timeout_seconds = 900\nfinish_seconds = 900\n"
    toy.write("treewright.toml", f"{CONFIG}\n[[on_event]]\n{notice}{more}")
    toy.commit("a tracker")
    search(toy.path, "hooked", 2)
    experiment = client.get_experiment_by_name("hooked")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    parents = [run for run in runs if "treewright.key" in run.data.tags]
    assert [run.info.run_name for run in parents] == ["hooked"]
    assert parents[0].data.tags["treewright.stop_reason"] == "max_depth_reached"
    assert len(runs) == 3


def test_the_command_reports_its_errors(
    two_runs: ToyRepository, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    arguments = ["mlflow", "one", "--experiment", "x"]
    told = run_here(monkeypatch, arguments, two_runs.path)
    assert "3 children and 5 points written" in told.stdout, told.stderr
    wrong = run_here(monkeypatch, ["mlflow", "-"], two_runs.path, "{}")
    assert wrong.returncode == 2
    assert "stdin has no notice with a run_dir" in wrong.stderr
    monkeypatch.delenv("MLFLOW_ALLOW_FILE_STORE")
    run = track_run(package.load_run(two_runs.run_dir("one")))
    other = (tmp_path / "other").as_uri()
    with pytest.raises(UsageError, match="MLFLOW_ALLOW_FILE_STORE=true"):
        mlflow.write(run, tracking_uri=other, experiment="e")
    with monkeypatch.context() as patch:  # as if only the small package were installed
        patch.setitem(sys.modules, "mlflow.store.tracking.sqlalchemy_store", None)
        with pytest.raises(UsageError, match="needs the whole of MLflow"):
            mlflow.write(run, tracking_uri=f"sqlite:///{tmp_path}/db", experiment="e")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "mlflow.tracking", None)
        with pytest.raises(MissingExtra, match=r"pip install 'treewright\[mlflow\]'"):
            mlflow.write(run, experiment="e")


def test_a_refusal_by_mlflow_is_a_one_line_error(
    two_runs: ToyRepository, client: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = client.create_experiment("e")
    client.delete_experiment(experiment)
    with pytest.raises(TreewrightError, match="was deleted; give another --experiment"):
        write(two_runs.run_dir("one"))
