"""The document of the comparison page, its limits, and refused files."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.dashboard import proof_runs, samples
from tests.dashboard.serving import Server
from tests.toy import ToyRepository
from treewright.dashboard import compare_view
from treewright.dashboard.roots import Roots, RunRef
from treewright.tree.records import layout


@pytest.fixture
def project(searched: ToyRepository, tmp_path: Path) -> Path:
    """Three tree runs: one finished, a copy of it, and one that was killed early."""
    runs = layout.runs_directory(tmp_path)
    for name in ("run", "again", "killed"):
        shutil.copytree(searched.run_dir(samples.RUN_ID), runs / name)
    killed = runs / "killed"
    (killed / layout.MANIFEST).unlink()
    lines = (killed / layout.EVENTS).read_bytes().splitlines(keepends=True)
    (killed / layout.EVENTS).write_bytes(b"".join(lines[: len(lines) // 3]))
    return tmp_path


def found(project: Path, *names: str, kind: str = "tree") -> list[RunRef]:
    roots = Roots([project])
    runs = [roots.find(kind, 0, name) for name in names]
    assert None not in runs
    return [run for run in runs if run is not None]


def test_the_comparison_shows_runs_in_columns(project: Path) -> None:
    runs = found(project, "run", "again", "killed")
    document = compare_view.describe(runs)
    assert document["problem"] == ""
    # Copies have the id of the original, so paths distinguish them.
    keys = [run["key"] for run in document["runs"]]
    assert keys == ["tree/0/run", "tree/0/again", "tree/0/killed"]
    whole, _, killed = document["runs"]
    assert killed["evaluations"] < whole["evaluations"]
    assert not killed["is_finished"]
    bests = [point.best for point in whole["points"]]
    assert bests[-1] == whole["best"]
    assert bests[:-1] == sorted(set(bests[:-1])), "only where something changed, and the end"
    assert {one.verdict for one in document["differences"] if one.run == whole["name"]} <= {
        "no_difference", "unknown",
    }  # fmt: skip
    assert "path" not in whole
    assert "tried" not in whole


def test_runs_that_cannot_be_compared_have_a_reason(project: Path) -> None:
    (run,) = found(project, "run")
    assert "at least two" in compare_view.describe([run])["problem"]
    assert "given twice" in compare_view.describe([run, run])["problem"]
    assert "at most 8" in compare_view.describe([run] * 9)["problem"]
    proof_runs.solved(project)
    (proof,) = found(project, "proof", kind="proof")
    assert compare_view.describe([run, proof])["problem"], "its run.json is not a real one"
    again = project / ".treewright" / "tree_runs" / "again" / layout.EVENTS
    again.write_bytes(b"damage\n" * 3)
    assert compare_view.describe(found(project, "run", "again"))["problem"]


def test_no_file_outside_a_run_is_read(project: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    again = layout.runs_directory(project) / "again"
    for name in (layout.EVENTS, layout.MANIFEST):
        shutil.move(again / name, outside / name)
        (again / name).symlink_to(outside / name)
    document = compare_view.describe(found(project, "run", "again"))
    assert "leads out of the run's directory" in document["problem"]


def test_titles_are_read_only_from_inside_the_run(project: Path, tmp_path: Path) -> None:
    ideas = layout.runs_directory(project) / "again" / layout.IDEAS
    shutil.rmtree(ideas)
    secret = tmp_path / "secret"
    (secret / "n0000").mkdir(parents=True)
    for number in range(8):
        (secret / "n0000" / layout.idea_file(number)).write_text("# a secret\n")
    ideas.symlink_to(secret)
    (whole, again) = found(project, "run", "again")
    text = str(compare_view.describe([whole, again]))
    assert "problem': ''" in text
    assert "a secret" not in text


def test_invalid_addresses_of_comparisons_are_refused(server: Server) -> None:
    assert server.get("/compare").status_code == 200
    one = "run=tree/0/run"
    assert "given twice" in server.get(f"/api/compare?{one}&{one}").json()["problem"]
    assert server.get(f"/api/compare?{one}&run=tree/0/none").status_code == 404
    assert server.get(f"/api/compare?{one}&run=../../x").status_code == 404
    assert server.get("/api/compare").json()["problem"]
