"""No file outside the given roots is read, for any record and any address."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard import proof_runs
from tests.dashboard.serving import Server
from tests.toy import ToyRepository
from tests.tree.runs import FinishedRun
from treewright.dashboard import run_files, tree_detail
from treewright.dashboard.roots import Roots
from treewright.dashboard.summaries import Summaries
from treewright.kernel.errors import UsageError
from treewright.kernel.storage import journal

ENDLESS = "9" * 5000
"""More digits than Python converts."""


def make_run(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "events.jsonl").write_text("{}\n")
    return path


def test_a_run_that_links_outside_its_root_is_not_listed(tmp_path: Path) -> None:
    elsewhere = make_run(tmp_path / "elsewhere" / "secret")
    project = tmp_path / "project"
    inside = make_run(project / ".treewright" / "tree_runs" / "inside")
    (inside.parent / "outside").symlink_to(elsewhere)
    (inside.parent / "alias").symlink_to(inside)
    roots = Roots([project])
    assert [run.run_id for run in roots.scan()] == ["alias", "inside"]
    assert roots.find("tree", 0, "outside") is None


def test_a_state_directory_that_links_outside_its_root_is_not_read(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    make_run(elsewhere / "tree_runs" / "secret")
    (elsewhere / "ledger.db").touch()
    project = tmp_path / "project"
    project.mkdir()
    (project / ".treewright").symlink_to(elsewhere)
    roots = Roots([project])
    assert roots.scan() == []
    assert roots.find("tree", 0, "secret") is None
    assert {run.kind for run in Roots([elsewhere]).scan()} == {"tree", "bank"}, "given, it is read"


def test_an_unreadable_directory_does_not_hide_other_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal is simulated: the tests may run as root, which no file system refuses."""
    runs = tmp_path / ".treewright" / "tree_runs"
    make_run(runs / "closed")
    make_run(runs / "open")
    ledger = tmp_path / ".treewright" / "ledger.db"
    is_file = Path.is_file

    def refusing(path: Path) -> bool:
        if path.parent.name == "closed" or path == ledger:
            raise PermissionError(13, "Permission denied")
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refusing)
    assert [run.run_id for run in Roots([tmp_path]).scan()] == ["open"]


def test_an_unreadable_journal_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal is simulated, as above."""
    make_run(tmp_path / ".treewright" / "tree_runs" / "a")
    proof_runs.ProofRun(tmp_path, "b")

    def refused(path: Path, *_: int) -> list[journal.Line]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(journal, "read", refused)
    roots = Roots([tmp_path])
    for problem in (run["problem"] for run in map(Summaries(roots).describe, roots.scan())):
        assert "Permission denied" in problem


@pytest.mark.parametrize("name", ["..", ".", "a/../../b", "a\0b", "", "x" * 200, "%2e%2e"])
def test_names_that_are_not_run_ids_match_no_run(tmp_path: Path, name: str) -> None:
    make_run(tmp_path / ".treewright" / "tree_runs" / "b")
    roots = Roots([tmp_path])
    for kind in ("tree", "proof", "bank", "../tree"):
        assert roots.find(kind, 0, name) is None
    assert roots.find("tree", 1, "b") is None
    assert roots.find("tree", -1, "b") is None


def test_directories_and_projects_are_valid_roots(tmp_path: Path) -> None:
    run = make_run(tmp_path / "p" / ".treewright" / "tree_runs" / "one")
    for given in (tmp_path / "p", run.parent.parent, run.parent, run):
        (found,) = Roots([given]).scan()
        assert (found.kind, found.run_id, found.project) == ("tree", "one", tmp_path / "p")
    with pytest.raises(UsageError, match="no directory"):
        Roots([tmp_path / "nowhere"])


def test_files_of_a_run_stay_inside_it(tmp_path: Path) -> None:
    base = tmp_path / "run"
    (base / "logs").mkdir(parents=True)
    (base / "logs" / "a.log").write_text("ours")
    secret = tmp_path / "secret.log"
    secret.write_text("not ours")
    (base / "logs" / "link.log").symlink_to(secret)
    (base / "out").symlink_to(tmp_path)
    assert run_files.read(base, "logs/a.log", 100) == ("ours", 4, 4)
    for path in ("../secret.log", str(secret), "logs/link.log", "out/secret.log", "logs", "x\0y"):
        assert run_files.read(base, path, 100) is None, path
    assert run_files.list_files(base, "logs", (".log",)) == [("a.log", 4)]
    assert run_files.list_files(base, "out", (".log",)) == []
    assert run_files.list_files(base, "..", (".log",)) == []


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e%2fapp.py",
        "/api/tree/0/..%2f..%2fetc",
        "/api/tree/0/run/log/e000001/..%2f..%2f..%2fmanifest.json",
        "/api/tree/0/run/log/e000001/%2fetc%2fpasswd",
        "/api/tree/0/run/log/..%2f..%2f/sweep.log",
        "/api/tree/7/run",
        "/tree/0",
        "//etc/passwd",
    ],
)
def test_addresses_reach_no_other_files(server: Server, path: str) -> None:
    assert server.get(path).status_code in (404, 400)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/api/tree/{ENDLESS}/run", 404),
        (f"/tree/{ENDLESS}/run", 404),
        (f"/api/tree/0/run?since=1.{ENDLESS}", 200),
        (f"/api/proof/0/proof?since=1.{ENDLESS}", 200),
        (f"/api/tree/0/run/log/e000001/sweep.log?offset={ENDLESS}", 200),
    ],
)
def test_very_long_numbers_cause_no_server_error(server: Server, path: str, status: int) -> None:
    server.get("/api/runs")  # the first reading of a run is generation 1
    assert server.get(path).status_code == status


def test_a_key_with_a_very_long_number_matches_no_run(tmp_path: Path) -> None:
    assert Roots([tmp_path]).find_key(f"tree/{ENDLESS}/run") is None


def test_records_that_point_outside_show_no_content(tmp_path: Path) -> None:
    """A forged manifest names files of the machine as idea, results and log directory."""
    from treewright.dashboard import tree_detail

    run = FinishedRun.make(tmp_path, ideas_per_node=2, max_depth=1, sweep_config_limit=8)
    (tmp_path / "secret.md").write_text("# The secret\n")
    manifest = run.manifest
    evaluation = manifest.evaluations["e000001"]
    evaluation.idea_path = "../../../../../secret.md"
    evaluation.candidate_results_csv_path = str(tmp_path / "secret.md")
    evaluation.experiment_dir = "../../../.."
    found = tree_detail.describe_item(run.run_dir, manifest, "e000001")
    assert found is not None
    assert "secret" not in str(found["idea"]["text"])
    assert found["logs"] == []
    assert all(not metric["pairs"] for metric in found["comparisons"]["parent"])
    assert tree_detail.read_log(run.run_dir, manifest, "e000001", "secret.md", 0) is None


def test_a_diff_does_not_run_fetch_commands_of_the_repository(toy: ToyRepository) -> None:
    """In a partial clone, git would fetch missing objects with a configured program."""
    before = toy.git("rev-parse", "HEAD").strip()
    toy.write("params.txt", "A 2.0\n")
    after = toy.commit("changed")
    blob = toy.git("rev-parse", "HEAD:params.txt").strip()
    (toy.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    mark = toy.path / "fetched"
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": str(toy.path),
        "remote.origin.uploadpack": f"touch '{mark}';",
    }
    for name, value in settings.items():
        toy.git("config", name, value)
    assert tree_detail.diff_commits(toy.path, before, after).problem
    assert not mark.exists()
