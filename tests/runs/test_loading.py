"""`treewright.load_run`: columns, pictures and steps of real runs, without writing."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

import treewright
from tests.dashboard.samples import HOSTILE_TITLE
from tests.toy import ToyRepository
from treewright.kernel.errors import StorageError, UsageError
from treewright.kernel.storage.lease import Lease
from treewright.runs.columns import MAX_ROWS_SHOWN, Columns
from treewright.runs.proof_run import ProofRun
from treewright.runs.search_run import SearchRun
from treewright.runs.tree_run import TreeRun
from treewright.tree.records.layout import EVENTS, LEASE, MANIFEST

pytestmark = pytest.mark.xdist_group("two-runs")
SAMPLES = Path(__file__).parents[1] / "proving" / "sample_runs"


def files(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Return the files of a run; of the lease only the names, because its owner writes
    heartbeats."""
    return {
        str(path.relative_to(directory)): (0, b"")
        if path.parent.name == LEASE
        else (path.stat().st_mtime_ns, path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file()
    }


def well_formed(svg: str) -> bool:
    return ElementTree.fromstring(svg).tag.endswith("svg")


def test_a_tree_run_is_loaded_as_columns(two_runs: ToyRepository) -> None:
    run = treewright.load_run(two_runs.run_dir("two"))
    assert isinstance(run, TreeRun)
    assert run.is_finished
    assert {len(values) for values in run.evaluations.values()} == {8}
    rows = list(run.evaluations.rows())
    assert HOSTILE_TITLE in run.evaluations["idea"]
    promoted = {row["node_id"] for row in rows if row["fate"] == "promoted"}
    assert promoted == {row["node_id"] for row in run.nodes.rows() if row["depth"]}
    assert run.best["score"] == max(run.nodes["score"]) == run.summary["best"]["score"]
    assert all(row["seconds"] > 0 for row in rows)


def test_pandas_takes_every_table_in_one_call(two_runs: ToyRepository, tmp_path: Path) -> None:
    import pandas

    tree = treewright.load_run(two_runs.run_dir("two"))
    proof = treewright.load_run(SAMPLES / "centralized")
    with treewright.open_search(tmp_path / "s", budget=3) as search:
        search.run(lambda task: float(task.number))
    own = treewright.load_run(tmp_path / "s")
    assert isinstance(tree, TreeRun)
    assert isinstance(proof, ProofRun)
    assert isinstance(own, SearchRun)
    tables = [tree.evaluations, tree.nodes, proof.goals, proof.simulations, proof.attempts]
    for columns in (*tables, own.nodes):
        frame = pandas.DataFrame(columns)
        assert list(frame.columns) == list(columns)
        assert len(frame) == columns.height > 0
    assert pandas.DataFrame(tree.nodes)["score"].max() == tree.best["score"]


def test_html_of_a_table_is_escaped(two_runs: ToyRepository) -> None:
    run = treewright.load_run(two_runs.run_dir("two"))
    assert isinstance(run, TreeRun)
    for shown in (run._repr_html_(), run.evaluations._repr_html_(), run.nodes._repr_html_()):
        assert "<script" not in shown
        assert "<img src=x" not in shown
        ElementTree.fromstring(f"<div>{shown}</div>")
    for picture in (run.tree(), run.scores()):
        assert well_formed(picture._repr_svg_())
        assert "<script" not in picture.svg


def test_a_long_table_shows_its_beginning() -> None:
    table = Columns.of(["n", "text"], [(n, "<b>" * 100) for n in range(MAX_ROWS_SHOWN + 7)])
    shown = table._repr_html_()
    assert shown.count("<tr>") == MAX_ROWS_SHOWN + 1
    assert "7 more rows" in shown
    assert "<b>" not in shown
    assert Columns.of(["n"], [])._repr_html_().count("<tr>") == 1


def test_loading_takes_no_lease_and_writes_no_file(two_runs: ToyRepository, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(two_runs.run_dir("one"), copy)
    lease = Lease.acquire(copy / LEASE)  # another process owns the run
    try:
        before = files(copy)
        run = treewright.load_run(copy)
        run._repr_html_()
        assert files(copy) == before
        lease.check()
    finally:
        lease.release()


def test_a_killed_run_can_be_loaded(two_runs: ToyRepository, tmp_path: Path) -> None:
    """Its manifest is missing and its last line is torn, as after a kill between two snapshots."""
    copy = tmp_path / "run"
    shutil.copytree(two_runs.run_dir("one"), copy)
    (copy / MANIFEST).unlink()
    lines = (copy / EVENTS).read_bytes().splitlines(keepends=True)
    (copy / EVENTS).write_bytes(b"".join(lines[:-3]) + lines[-3][:20])
    run = treewright.load_run(copy)
    assert isinstance(run, TreeRun)
    assert not run.is_finished
    assert "none yet" in run._repr_html_()
    (copy / EVENTS).write_bytes(b"".join(lines[:4]))  # no evaluation was queued yet
    treewright.load_run(copy)._repr_html_()
    (copy / EVENTS).write_bytes(b"".join([*lines[:2], b"damage\n", *lines[3:]]))
    with pytest.raises(StorageError, match=r"events\.jsonl"):
        treewright.load_run(copy)


@pytest.mark.parametrize("name", ["centralized", "distributed"])
def test_a_recorded_proof_run_has_its_steps(name: str) -> None:
    run = treewright.load_run(SAMPLES / name)
    assert isinstance(run, ProofRun)
    assert run.is_finished
    assert run.goals.height == 1
    steps = list(run.steps())
    assert len(steps) == run.simulations.height == run.goals["simulations"][0]
    assert sum(len(step.tried) for step in steps) == run.attempts.height
    assert steps[0].at.splitlines()[-1].startswith("⊢ ")
    assert [step.number for step in steps] == run.simulations["simulation"]
    for step in steps:
        for tried in step.tried:
            assert (tried.outcome == "goals") == bool(tried.leaves) or not tried.worked
    if name == "centralized":
        assert run.proved == 1
        assert steps[-1].solved
        assert "closed: simp_all" in str(steps[-1])
    for picture in (run.growth(), run.root_value(0), run.outcomes()):
        assert well_formed(picture.svg)
    ElementTree.fromstring(f"<div>{run._repr_html_()}</div>")
    with pytest.raises(UsageError, match=r"no goal 'other'; there are: goal"):
        list(run.steps("other"))


def test_a_new_proof_run_can_be_loaded(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "centralized" / "run.json", tmp_path)
    run = treewright.load_run(tmp_path)
    assert isinstance(run, ProofRun)
    assert not run.is_finished
    assert run.goals.height == 0
    assert list(run.steps()) == []
    assert "not yet" in run._repr_html_()


def test_a_library_search_can_be_loaded(tmp_path: Path) -> None:
    with treewright.open_search(tmp_path / "s", policy="best-first", seed=1, budget=6) as search:
        for number in range(5):
            task = search.ask()
            assert task is not None
            if number == 2:
                search.fail(task, "<broken>")
            else:
                search.tell(task, score=float(number), data={"n": number})
        run = treewright.load_run(tmp_path / "s")  # while another process owns it
    assert isinstance(run, SearchRun)
    assert not run.is_finished
    assert run.nodes["status"] == ["root", "scored", "scored", "failed", "scored", "scored"]
    assert run.best is not None
    assert run.best["data"] == {"n": 4}
    assert well_formed(run.scores().svg)
    assert "&lt;broken&gt;" in run.nodes._repr_html_()
    ElementTree.fromstring(f"<div>{run._repr_html_()}</div>")


def test_a_run_is_found_by_its_id_and_a_missing_run_is_an_error(
    two_runs: ToyRepository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(two_runs.path)
    assert treewright.load_run("one").run_id == "one"
    with pytest.raises(UsageError, match="no run at three: give the directory"):
        treewright.load_run("three")
    with pytest.raises(UsageError, match="no run at"):
        treewright.load_run(tmp_path)
