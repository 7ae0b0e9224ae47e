"""Experiments: discovery, grid, repeated reads and damaged files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dashboard.experiments import HOSTILE, experiment
from tests.dashboard.serving import served
from treewright.dashboard import change_stream, experiment_view, export, proof_view
from treewright.dashboard.experiment_view import ExperimentLibrary
from treewright.dashboard.proof_view import LiveProof
from treewright.dashboard.roots import Roots, RunRef
from treewright.kernel.errors import StorageError

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("experiments")
    experiment(made)
    experiment(made, "begun", runs=5)
    return made


def found(project: Path, name: str) -> RunRef:
    run = Roots([project]).find("experiment", 0, name)
    assert run is not None
    return run


def test_an_experiment_is_one_run_with_proof_runs_in_it(project: Path) -> None:
    roots = Roots([project])
    assert [run.key for run in roots.scan()] == ["experiment/0/begun", "experiment/0/damage"]
    answer = ExperimentLibrary().overview(found(project, "damage"))
    for cell in answer["cells"]:
        run = roots.find_key(f"experiment/0/damage/{cell['id']}")
        assert run is not None
        assert run.key == f"experiment/0/damage/{cell['id']}"
    assert proof_view.summary(LiveProof(run).refresh())["iterations"] > 0
    for other in ("x", "../begun", "..", "cell/x", ""):
        assert roots.find_cell(0, "damage", other) is None
    assert roots.find_cell(0, "absent", cell["id"]) is None
    assert roots.find_cell(9, "damage", cell["id"]) is None
    alone = Roots([found(project, "damage").path])
    assert alone.find_cell(0, "damage", cell["id"]) is not None


def test_the_page_shows_the_grid_and_measures(project: Path) -> None:
    answer = ExperimentLibrary().overview(found(project, "damage"))
    assert answer["run"]["liveness"].state == "stopped"
    assert answer["run"]["progress"]["done"] == answer["run"]["progress"]["of"] == 36
    solved = [cell["state"] == "proved" for cell in answer["cells"]]
    assert answer["run"]["progress"]["proved"] == sum(solved) > 0
    assert {(one["setup"], one["arm"]): one["runs"] for one in answer["groups"]} == {
        ("centralized", "none"): 9,
        ("distributed, 4 agents", "none"): 9,
        ("distributed, 4 agents", "block 0.25"): 9,
        ("distributed, 4 agents", "block 0.75"): 9,
    }
    for one in answer["groups"]:
        assert one["solved"].low <= one["solved"].value <= one["solved"].high
        assert one["steps"].low <= one["steps"].value <= one["steps"].high
    assert [one["arm"] for one in answer["damage"]] == ["block 0.25", "block 0.75"]
    assert len(answer["curves"][0]["found"].levels) == 3


def test_an_unfinished_experiment_is_shown(project: Path) -> None:
    answer = ExperimentLibrary().overview(found(project, "begun"))
    states = [cell["state"] for cell in answer["cells"]]
    assert answer["run"]["progress"]["done"] == 5
    assert answer["run"]["liveness"].state == "paused"
    assert states[5:7] == ["interrupted", "waiting"]
    assert [cell["opens"] for cell in answer["cells"]][4:7] == [True, True, False]


def test_finished_runs_are_read_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = ExperimentLibrary()
    library.overview(found(project, "damage"))
    monkeypatch.setattr(experiment_view, "decode_result", None)
    monkeypatch.setattr(experiment_view.comparisons, "groups_of", None)
    assert library.overview(found(project, "damage"))["run"]["problem"] == ""


def test_a_finished_run_is_a_change(tmp_path: Path) -> None:
    directory = experiment(tmp_path, runs=1)
    roots = Roots([tmp_path])
    library = ExperimentLibrary()
    assert library.summary(found(tmp_path, "damage"))["progress"]["done"] == 1
    before = change_stream.read_signatures(roots, {None})
    experiment(tmp_path, runs=2)
    assert change_stream.read_signatures(roots, {None}) != before
    assert library.summary(found(tmp_path, "damage"))["progress"]["done"] == 2
    (directory / "plan.json").write_text("{}")
    summary = library.summary(found(tmp_path, "damage"))
    assert summary["liveness"].state == "damaged"
    assert "plan.json" in summary["problem"]
    with pytest.raises(StorageError, match=r"plan\.json"):
        export.write(export.find(str(directory), tmp_path), tmp_path / "x.html")


def test_a_damaged_result_does_not_hide_the_others(tmp_path: Path) -> None:
    directory = experiment(tmp_path, runs=3)
    first, second = sorted(directory.glob("cells/*/cell.json"))[:2]
    first.write_text("{")
    first.with_name("run.json").write_text('{"created_at": "2026-02-01T00:00:00Z"}')
    second.with_name("run.json").write_text('{"created_at": "2026-01-01T00:00:00Z"}')
    answer = ExperimentLibrary().overview(found(tmp_path, "damage"))
    assert answer["run"]["progress"]["done"] == 2
    assert answer["run"]["liveness"].state == "damaged"
    assert str(first) in answer["run"]["problem"]
    assert answer["run"]["created_at"] == "2026-01-01T00:00:00Z", "the first begun, by time"


def test_a_result_that_links_outside_is_not_read(tmp_path: Path) -> None:
    directory = experiment(tmp_path, runs=1)
    (cell,) = directory.glob("cells/0001-*/cell.json")
    cell.rename(tmp_path / "elsewhere.json")
    cell.symlink_to(tmp_path / "elsewhere.json")
    assert ExperimentLibrary().summary(found(tmp_path, "damage"))["progress"]["done"] == 0


def test_invalid_addresses_of_experiments_are_refused(project: Path) -> None:
    with served("--runs", project) as server:
        runs = server.get("/api/runs").json()["runs"]
        assert {run["kind"] for run in runs} == {"experiment"}
        answer = server.get("/api/experiment/0/damage").json()
        assert HOSTILE in {goal["name"] for goal in answer["plan"]["goals"]}
        cell = answer["cells"][0]["id"]
        proof = server.get(f"/api/experiment/0/damage/{cell}").json()
        assert proof["run"]["key"] == f"experiment/0/damage/{cell}"
        assert proof["trace"]["records"]
        assert server.get(f"/experiment/0/damage/{cell}").status_code == 200
        for absent in ("/api/experiment/0/x", "/api/experiment/0/damage/x", "/api/proof/0/damage"):
            assert server.get(absent).status_code == 404


def test_an_experiment_is_exported_as_one_file(project: Path, tmp_path: Path) -> None:
    run = export.find("damage", project)
    assert export.write(run, tmp_path / "experiment.html") == (36, 36)
    text = (tmp_path / "experiment.html").read_text("utf-8")
    assert HOSTILE not in text
    data = text.partition('id="carried">')[2].partition("</script>")[0]
    assert json.loads(data)["key"] == "experiment/0/damage"
