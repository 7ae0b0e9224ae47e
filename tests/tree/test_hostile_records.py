"""Code in a worktree can reach git's record of the worktree, unless it is isolated.

Such code harms at most its own candidate: neither the user's branches and worktrees nor the run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.readonly import bound_by_permissions
from tests.toy import ToyRepository, diff_of_line, idea, set_parameter
from tests.tree.runs import RUN_ID, search
from tests.tree.test_users_repository import worktrees_of
from treewright.kernel.storage import untrusted
from treewright.tree.agents.backend import AgentFailure
from treewright.tree.agents.checkout import Checkout
from treewright.tree.records import store
from treewright.tree.repository import refs
from treewright.tree.repository.git import git
from treewright.tree.repository.private_repository import private_repository
from treewright.tree.validation import validate

DAMAGES = (
    "echo 'ref: refs/heads/main' > HEAD",
    "git -C '{repo}' rev-parse HEAD > HEAD",
    "rm HEAD; mkfifo HEAD",
    "rm index; mkdir index; touch index/file",
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_rebuilt(toy: ToyRepository, damage: str) -> None:
    head = toy.git("rev-parse", "HEAD").strip()
    trees = worktrees_of(toy.path)
    path = trees.add_candidate("e1", head)
    (path / "params.txt").write_text("A 2\n")
    git(path, "add", "--all")
    made = trees.commit_candidate("e1", "x", 1_700_000_000)
    record, _ = refs.git_directories(path)
    subprocess.run(damage.format(repo=toy.path), shell=True, cwd=record, check=True)
    trees.pristine_candidate("e1", made.commit)
    assert toy.git("rev-parse", "HEAD").strip() == head
    assert toy.git("status", "--porcelain") == ""
    assert git(path, "rev-parse", "HEAD").strip() == made.commit
    assert (path / "params.txt").read_text() == "A 2\n"


def away(toy: ToyRepository, disk: Path) -> None:
    """Create a worktree of the user with staged work, on a disk that is then unplugged."""
    toy.git("worktree", "add", "-q", "-b", "mine", str(disk / "mine"))
    ToyRepository(disk / "mine").write("new", "my work\n")
    git(disk / "mine", "add", "new")
    disk.rename(disk.with_name("unplugged"))


@pytest.mark.parametrize("obstacle", ["packed-refs.lock", "locked", "unreadable"])
def test_the_users_worktrees_are_never_pruned(
    toy: ToyRepository, tmp_path: Path, obstacle: str
) -> None:
    """Each obstacle keeps git from removing the candidates' records at that moment."""
    head = toy.git("rev-parse", "HEAD").strip()
    trees = worktrees_of(toy.path)
    away(toy, tmp_path / "disk")
    for name in ("e1", "e2", "e3"):
        record, _ = refs.git_directories(trees.add_candidate(name, head))
        if obstacle == "locked":
            (record / "locked").write_text("")
    if obstacle == "packed-refs.lock":  # as while git packs the refs
        (toy.path / ".git" / obstacle).touch()
    elif obstacle == "unreadable":
        (record / "gitdir").rename(record / "elsewhere")
        (record / "gitdir").symlink_to("elsewhere")
    trees.remove_candidate("e1")
    trees.remove_candidates(["e2"])
    (toy.path / ".git/packed-refs.lock").unlink(missing_ok=True)
    trees.repair({}, [])
    (tmp_path / "unplugged").rename(tmp_path / "disk")
    assert git(tmp_path / "disk" / "mine", "status", "--porcelain") == "A  new\n"
    if obstacle != "unreadable":
        assert toy.git("branch", "--list", "treewright/*") == ""
        assert [path.name for path in (toy.path / ".git/worktrees").iterdir()] == ["mine"]


@pytest.mark.parametrize("what", ["removed", "replaced"])
def test_an_agent_that_removes_its_worktree_has_failed(toy: ToyRepository, what: str) -> None:
    path = worktrees_of(toy.path).add_candidate("e1", toy.git("rev-parse", "HEAD").strip())
    checkout = Checkout.of(path)
    shutil.rmtree(path)
    if what == "replaced":
        path.write_text("")
    for look in (checkout.take_back_head, checkout.stage, checkout.tree):
        with pytest.raises(AgentFailure, match="worktree"):
            look()


def test_code_that_removes_its_logs_is_rejected_by_the_gate(toy: ToyRepository) -> None:
    """The sweep left no results, and the run goes on."""
    shutil.rmtree(toy.path / "ideas")
    toy.write("code.sh", "# nothing\n# keep\n")
    toy.write("sweep.sh", (toy.path / "sweep.sh").read_text() + "sh code.sh\n")
    evil = "rm -rf ../../eval/*/experiment"
    toy.write("ideas/00.md", idea("Evil", diff_of_line("code.sh", "# nothing", evil, 1)))
    toy.commit("it runs code")
    run_dir = search(toy.path, sweep_config_limit=8, max_depth=1)
    (evaluation,) = store.load(run_dir).evaluations.values()
    assert run_dir == toy.run_dir(RUN_ID)
    assert evaluation.decision is not None
    assert evaluation.decision.fate == "gate_failed"


@pytest.mark.parametrize("name", ["commondir", "gitdir"])
def test_a_pipe_in_the_record_of_a_worktree_hangs_no_run(toy: ToyRepository, name: str) -> None:
    """Git reads the records of all worktrees when it adds one, and would wait for ever."""
    shutil.rmtree(toy.path / "ideas")
    toy.write("code.sh", "# nothing\n# keep\n")
    toy.write("sweep.sh", (toy.path / "sweep.sh").read_text() + "sh code.sh\n")
    evil = f'cd "$(dirname "$(cut -c9- .git)")" && rm {name} && mkfifo {name}'
    toy.write("ideas/00.md", idea("Evil", diff_of_line("code.sh", "# nothing", evil, 1)))
    toy.write("ideas/01.md", set_parameter("A", 2.0))
    toy.commit("it runs code")
    run_dir = search(toy.path, sweep_config_limit=8, ideas_per_node=2, max_depth=1)
    first, second = store.load(run_dir).evaluations.values()
    assert first.decision is not None
    assert first.decision.fate != "promoted"
    assert second.decision is not None
    assert second.decision.fate == "promoted"
    assert toy.git("worktree", "list").count("/cand/") == 0
    assert validate(run_dir, toy.path) == []


def test_a_record_of_another_worktree_is_given_back(toy: ToyRepository) -> None:
    """Git listed the user's checkout as the worktree of a candidate, and kept its branch."""
    trees = worktrees_of(toy.path)
    path = trees.add_candidate("e1", toy.git("rev-parse", "HEAD").strip())
    record, _ = refs.git_directories(path)
    with private_repository(path):
        (record / "gitdir").write_text(f"{toy.path}/.git\n")
        (record / "commondir").unlink()
    trees.remove_candidate("e1")
    assert toy.git("worktree", "list").count("\n") == 1
    assert toy.git("branch", "--list", "treewright/*") == ""


def test_a_pipe_left_by_a_killed_run_hangs_no_repair(toy: ToyRepository) -> None:
    trees = worktrees_of(toy.path)
    path = trees.add_candidate("e1", toy.git("rev-parse", "HEAD").strip())
    record, _ = refs.git_directories(path)
    (record / "commondir").unlink()
    os.mkfifo(record / "commondir")
    (toy.path / ".git/objects/info/alternates").symlink_to("/dev/zero")
    trees.repair({}, [])
    assert "e1" not in toy.git("worktree", "list")
    assert not os.path.lexists(toy.path / ".git/objects/info/alternates")


def test_code_that_removes_the_journal_loses_no_records(toy: ToyRepository) -> None:
    """Regression: the run wrote to the removed file, reported success, and was lost."""
    toy.write("code.sh", "# nothing\n# keep\n")
    toy.write("sweep.sh", (toy.path / "sweep.sh").read_text() + "sh code.sh\n")
    evil = "rm -f ../../events.jsonl ../../manifest.json"
    toy.write("ideas/00.md", idea("Evil", diff_of_line("code.sh", "# nothing", evil, 1)))
    toy.commit("it runs code")
    shape = {"sweep_config_limit": 8, "ideas_per_node": 2}
    run_dir = search(toy.path, **shape, max_depth=1)
    before = store.load(run_dir)
    assert len(before.evaluations) == 2
    assert validate(run_dir, toy.path) == []
    (run_dir / "manifest.json").unlink()
    assert store.load(run_dir).evaluations == before.evaluations


IN_PRIVATE = """
import sys, subprocess
from pathlib import Path
from treewright.tree.repository.git import GitError, git
from treewright.tree.repository.private_repository import private_repository
path, script = Path(sys.argv[1]), sys.argv[2]
with private_repository(path):
    subprocess.run(script, shell=True, cwd=path, check=True)
print(git(path, "rev-parse", "--git-dir"), end="")
"""


@pytest.mark.parametrize(
    "script", ["chmod 000 .", "chmod 555 .", 'chmod 000 "$(git rev-parse --git-dir)/.."']
)
def test_a_worktree_without_permissions_is_restored(toy: ToyRepository, script: str) -> None:
    """Regression: its `.git` could not be restored, and each invocation of the run failed."""
    path = worktrees_of(toy.path).add_candidate("e1", toy.git("rev-parse", "HEAD").strip())
    before = git(path, "rev-parse", "--git-dir")
    command = [sys.executable, "-c", IN_PRIVATE, str(path), script]
    done = subprocess.run(bound_by_permissions(command), check=True, capture_output=True, text=True)
    assert done.stdout == before


@pytest.mark.parametrize("instead", ["", "mkfifo", "touch", "ln -s /nowhere"])
def test_a_removed_artifacts_directory_is_restored(toy: ToyRepository, instead: str) -> None:
    """Regression: the files in it could not be restored, and each invocation of the run failed."""
    toy.write("code.sh", "# nothing\n# keep\n")
    toy.write("sweep.sh", (toy.path / "sweep.sh").read_text() + "sh code.sh\n")
    evil = "rm -rf ../../artifacts" + (f"; {instead} ../../artifacts" if instead else "")
    toy.write("ideas/00.md", idea("Evil", diff_of_line("code.sh", "# nothing", evil, 1)))
    toy.commit("it runs code")
    run_dir = search(toy.path, sweep_config_limit=8, ideas_per_node=2, max_depth=1)
    first, second = store.load(run_dir).evaluations.values()
    assert first.error is not None
    assert first.error.code == "deciding_file_changed"
    assert second.status == "completed"
    assert validate(run_dir, toy.path) == []


def test_replacing_a_link_with_a_directory_is_logged(
    toy: ToyRepository, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_dir = search(toy.path, sweep_config_limit=8, ideas_per_node=1, max_depth=1)
    (run_dir / "artifacts").rename(tmp_path / "moved")
    (run_dir / "artifacts").symlink_to(tmp_path / "moved")
    search(toy.path, sweep_config_limit=8, ideas_per_node=1, max_depth=1)
    assert f"was a link to '{tmp_path / 'moved'}'" in caplog.text
    assert (tmp_path / "moved" / "root_baseline.csv").exists()


@pytest.mark.parametrize("name", ["manifest.json", "events.jsonl"])
def test_a_pipe_in_place_of_a_record_is_a_finding(toy: ToyRepository, name: str) -> None:
    """Code that ended the search may leave such a pipe. Regression: validation blocked."""
    run_dir = search(toy.path, sweep_config_limit=8, ideas_per_node=1, max_depth=1)
    (run_dir / name).unlink()
    os.mkfifo(run_dir / name)
    assert validate(run_dir, toy.path)[0].code in ("manifest_unreadable", "events_unreadable")


def test_a_directory_that_another_worker_creates_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers start at once. Regression: the first found no directory, the second created it
    with a worktree, and the first then removed both because it had found no directory."""
    place, real, made = tmp_path / "cand", Path.is_dir, list[Path]()

    def seen_before_it_is_made(path: Path) -> bool:
        before = real(path)
        if path == place and not made:
            (place / "e000001").mkdir(parents=True)
            made.append(path)
        return before

    def looked_at_before_it_is_made(path: Path) -> os.stat_result:
        try:
            return os.lstat(path)
        finally:
            seen_before_it_is_made(path)

    monkeypatch.setattr(Path, "is_dir", seen_before_it_is_made)
    monkeypatch.setattr(Path, "lstat", looked_at_before_it_is_made)
    untrusted.reclaim_directory(place)
    assert made
    assert (place / "e000001").exists()


@pytest.mark.parametrize("link", ["refs/heads/treewright", "refs/heads/treewright/run"])
def test_locks_are_not_removed_through_a_link(
    toy: ToyRepository, tmp_path: Path, link: str
) -> None:
    """Code that ended the search may leave such a link; a file that ends in .lock need not belong
    to git."""
    mine = tmp_path / "project/run/deep/poetry.lock"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine\n")
    place = toy.path / ".git" / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(tmp_path / "project")
    refs.remove_locks(toy.path, "refs/heads/treewright/run/")
    assert mine.read_text() == "mine\n"
