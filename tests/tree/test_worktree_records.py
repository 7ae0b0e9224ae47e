"""Git's records of worktrees, and the removal of those of a run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from treewright.tree.repository import worktree_records
from treewright.tree.repository.git import git
from treewright.tree.repository.worktrees import Worktrees


def test_the_record_of_a_dead_worktree_is_removed(toy: ToyRepository) -> None:
    common, run_dir = toy.path / ".git", toy.run_dir("run")
    worktree_records.remove_dead_records(common, run_dir)
    trees = Worktrees(toy.path, run_dir, "run")
    made = trees.add_candidate("e1", toy.git("rev-parse", "HEAD").strip())
    worktree_records.remove_dead_records(common, run_dir)
    assert listed(toy) == [made]
    (made / ".git").rename(made / "elsewhere")
    worktree_records.remove_dead_records(common, run_dir)
    assert listed(toy) == []


def test_a_record_that_git_is_creating_is_left_alone(toy: ToyRepository) -> None:
    record = toy.path / ".git/worktrees/new"
    record.mkdir(parents=True)
    (record / "locked").write_text("initializing")
    Worktrees(toy.path, toy.run_dir("run"), "run").repair({}, [])
    assert record.exists()
    (record / "locked").unlink()
    Worktrees(toy.path, toy.run_dir("run"), "run").repair({}, [])
    assert not record.exists()


def test_the_users_worktree_on_an_unplugged_disk_is_kept(
    toy: ToyRepository, tmp_path: Path
) -> None:
    toy.git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "disk" / "mine"))
    (tmp_path / "disk").rename(tmp_path / "not mounted")
    trees = Worktrees(toy.path, toy.run_dir("run"), "run")
    made = trees.add_candidate("e1", toy.git("rev-parse", "HEAD").strip())
    shutil.rmtree(made)
    trees.repair({}, [])
    (tmp_path / "not mounted").rename(tmp_path / "disk")
    assert git(tmp_path / "disk" / "mine", "status", "--porcelain") == ""
    assert listed(toy) == [tmp_path / "disk" / "mine"]


def listed(toy: ToyRepository) -> list[Path]:
    """Return the worktrees that git lists, without the main one."""
    lines = toy.git("worktree", "list", "--porcelain").splitlines()
    return [Path(line.removeprefix("worktree ")) for line in lines if line.startswith("worktree ")][
        1:
    ]


@pytest.fixture
def trees(toy: ToyRepository) -> Worktrees:
    return Worktrees(toy.path, toy.run_dir("run"), "run")


def candidate(toy: ToyRepository, trees: Worktrees, name: str = "e1") -> Path:
    """Add a candidate's worktree and return git's record of it."""
    made = trees.add_candidate(name, toy.git("rev-parse", "HEAD").strip())
    return Path(git(made, "rev-parse", "--absolute-git-dir").strip())


def nothing_left(toy: ToyRepository) -> bool:
    records = toy.path / ".git/worktrees"
    return (
        (not records.exists() or not list(records.iterdir()))
        and toy.git("worktree", "list").count("\n") == 1
        and toy.git("for-each-ref", "refs/heads/treewright") == ""
    )


def test_only_the_record_of_that_worktree_is_removed(
    toy: ToyRepository, trees: Worktrees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other runs and the user may have worktrees of the same name."""
    toy.git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "e1"))
    other = Worktrees(toy.path, toy.run_dir("other"), "other")
    kept = [toy.path / ".git/worktrees/e1", candidate(toy, other)]
    record = candidate(toy, trees)
    asked = []
    monkeypatch.setattr("treewright.tree.repository.worktrees.git", lambda *a, **_: asked.append(a))
    trees.remove_candidate("e1")
    assert asked == []
    assert not record.exists()
    assert all((each / "HEAD").exists() for each in kept)
    assert git(tmp_path / "e1", "status", "--porcelain") == ""
    assert git(other.candidate_path("e1"), "status", "--porcelain") == ""


@pytest.mark.parametrize("order", [sorted, lambda names: sorted(names, reverse=True)])
@pytest.mark.parametrize("remove", [Worktrees.remove_candidate, None])
def test_a_partly_removed_record_is_removed_later(
    toy: ToyRepository,
    trees: Worktrees,
    order: Callable[[list[str]], list[str]],
    remove: Callable[[Worktrees, str], None] | None,
) -> None:
    for count in range(20):
        record = candidate(toy, trees)
        shutil.rmtree(trees.candidate_path("e1"))
        names = order([path.name for path in record.iterdir()])
        for name in names[:count]:
            shutil.rmtree(record / name) if (record / name).is_dir() else (record / name).unlink()
        if remove is not None:
            remove(trees, "e1")
            assert toy.git("for-each-ref", "refs/heads/treewright") == ""
        trees.repair({}, [])
        assert nothing_left(toy), names[:count]
        if count >= len(names):
            break
    assert count > 4, "HEAD, ORIG_HEAD, commondir, gitdir, index, logs"


def test_git_removes_a_worktree_that_the_user_locked(toy: ToyRepository, trees: Worktrees) -> None:
    record = candidate(toy, trees)
    toy.git("worktree", "lock", str(trees.candidate_path("e1")))
    shutil.rmtree(trees.candidate_path("e1"))
    assert not worktree_records.remove_records(toy.path / ".git", [trees.candidate_path("e1")])
    assert record.exists()
    trees.remove_candidate("e1")
    assert nothing_left(toy)


def test_git_removes_records_after_the_repository_was_moved(
    toy: ToyRepository, trees: Worktrees, tmp_path: Path
) -> None:
    """After such a move git's records point to paths that do not exist any more."""
    candidate(toy, trees)
    moved = tmp_path / "moved"
    toy.path.rename(moved)
    there = ToyRepository(moved)
    Worktrees(moved, there.run_dir("run"), "run").remove_candidates(["e1"])
    assert nothing_left(there)


def test_a_link_in_place_of_a_record_is_not_followed(
    toy: ToyRepository, trees: Worktrees, tmp_path: Path
) -> None:
    record = candidate(toy, trees)
    record.rename(tmp_path / "elsewhere")
    record.symlink_to(tmp_path / "elsewhere")
    shutil.rmtree(trees.candidate_path("e1"))
    assert not worktree_records.remove_records(toy.path / ".git", [trees.candidate_path("e1")])
    assert (tmp_path / "elsewhere" / "HEAD").exists()


def test_a_record_that_git_has_just_begun_is_left_alone(
    toy: ToyRepository, trees: Worktrees
) -> None:
    candidate(toy, trees)
    shutil.rmtree(trees.candidate_path("e1"))
    records = toy.path / ".git/worktrees"
    for name, content in (("new", None), ("newer", b"/nowhere/yet/.git\n")):
        (records / name).mkdir()
        (records / name / "locked").write_bytes(b"initializing\n")
        if content is not None:
            (records / name / "gitdir").write_bytes(content)
    assert worktree_records.remove_records(toy.path / ".git", [trees.candidate_path("e1")])
    assert sorted(path.name for path in records.iterdir()) == ["new", "newer"]


def test_dead_worktrees_of_the_user_are_left_alone(
    toy: ToyRepository, trees: Worktrees, tmp_path: Path
) -> None:
    """The user may be about to remove such a worktree: of two concurrent removals one fails."""
    candidate(toy, trees)
    toy.git("worktree", "add", "-q", "-b", "mine", str(tmp_path / "mine"))
    shutil.rmtree(tmp_path / "mine")
    trees.remove_candidate("e1")
    assert [path.name for path in (toy.path / ".git/worktrees").iterdir()] == ["mine"]
    assert toy.git("for-each-ref", "refs/heads/treewright") == ""


def test_a_new_worktree_equals_one_made_by_git(toy: ToyRepository, trees: Worktrees) -> None:
    """The reflog differs: it has an entry for moving HEAD."""
    head = toy.git("rev-parse", "HEAD").strip()

    def facts() -> tuple[object, ...]:
        path = trees.candidate_path("e1")
        record = Path(git(path, "rev-parse", "--absolute-git-dir").strip())
        files = {
            p.name: (p.stat().st_mode, p.read_bytes()) for p in record.iterdir() if p.is_file()
        }
        files = {name: files[name] for name in ("HEAD", "commondir", "gitdir")}
        branch = git(path, "status", "--porcelain", "--branch")
        return files, branch, toy.git("worktree", "list", "--porcelain"), toy.git("branch", "-vv")

    candidate(toy, trees)
    ours = facts()
    trees.remove_candidate("e1")
    assert nothing_left(toy)
    place = str(trees.candidate_path("e1"))
    toy.git("worktree", "add", "-q", "-B", "treewright/run/cand/e1", place, head)
    assert facts() == ours
    assert toy.git("fsck", "--strict") == ""
