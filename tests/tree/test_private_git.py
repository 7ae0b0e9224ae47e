"""Git commands of tests and sweeps do not change the user's repository."""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.faults.running import Gate, Search, add_gate, finish
from tests.toy import ToyRepository
from tests.tree.runs import search
from treewright.tree.records import store
from treewright.tree.repository.git import GitError, git
from treewright.tree.repository.private_repository import private_repository
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.validation import validate

MISCHIEF = """\
git log --oneline main kept v1 -- > /dev/null || exit 1
git show -s refs/stash > /dev/null || exit 1
export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x
echo '# more' >> params.txt; git stash -q || exit 1
git branch -f main HEAD~1; git branch -D kept; git update-ref refs/heads/other HEAD || exit 1
git update-ref -d refs/stash; git tag mine; git tag -d v1; git tag -fam note v2 HEAD || exit 1
git config user.name Somebody; git config core.bare true; git config core.bare false
git remote add evil /x; git commit -q --allow-empty -m x; git checkout -q --detach || exit 1
git gc -q --prune=now; git reflog expire --expire=now --all
"""
FLAGS = ("--ideas-per-node", "1", "--max-depth", "1", "--sweep-config-limit", "8")


def shared(repo: ToyRepository) -> dict[str, str]:
    """Return everything that worktrees share with their repository, except the search's
    branches."""
    refs = repo.git("for-each-ref").splitlines()
    return {
        "refs": "\n".join(line for line in refs if "/treewright/" not in line),
        "stash": repo.git("stash", "list"),
        "config": (repo.path / ".git" / "config").read_text(),
        "head": repo.git("symbolic-ref", "HEAD") + repo.git("status", "--porcelain"),
        "history": repo.git("fsck", "--connectivity-only", "--no-dangling"),
    }


@pytest.fixture
def busy_toy(toy: ToyRepository) -> ToyRepository:
    """A repository with tags, branches and a stash of the user."""
    toy.git("branch", "kept")
    toy.git("tag", "v1")
    toy.git("tag", "-am", "annotated", "v2")
    toy.write("params.txt", "A 7\n")
    toy.git("stash", "-q")
    return toy


def test_ref_changes_of_tests_and_sweeps_do_not_reach_the_repository(
    busy_toy: ToyRepository,
) -> None:
    for script in ("tests.sh", "sweep.sh"):
        text = (busy_toy.path / script).read_text().removeprefix("#!/bin/sh\n")
        busy_toy.write(script, f"( {MISCHIEF}) || exit 7\ngit checkout -q -f v2 -- .\n{text}")
    busy_toy.commit("scripts that use git freely")
    busy_toy.git("tag", "-fam", "annotated", "v2", "HEAD")
    before = shared(busy_toy)
    shape = {"ideas_per_node": 2, "max_depth": 1, "sweep_config_limit": 8, "confirm_configs": 4}
    run_dir = search(busy_toy.path, **shape)
    assert shared(busy_toy) == before
    evaluations = store.load(run_dir).evaluations.values()
    assert [e.error for e in evaluations] == [None, None]
    assert [e.confirmation is not None for e in evaluations].count(True) > 0
    assert validate(run_dir, busy_toy.path) == []
    assert list(busy_toy.path.glob(".git/worktrees/*/treewright-private")) == []


def test_a_candidate_without_git_does_not_use_the_surrounding_repository(
    busy_toy: ToyRepository,
) -> None:
    test = "rm .git; git stash -q; git tag lost; git config user.name x; git init -q; git add .\n"
    busy_toy.write("tests.sh", test)
    busy_toy.commit("tests that lose their way")
    before = shared(busy_toy)
    run_dir = search(busy_toy.path, ideas_per_node=1, max_depth=1, sweep_config_limit=8)
    assert shared(busy_toy) == before
    assert store.load(run_dir).evaluations["e000001"].error is None


def test_a_worktree_is_reattached_after_a_kill_in_a_sweep(
    toy: ToyRepository, tmp_path: Path
) -> None:
    add_gate(toy)
    gate = Gate(tmp_path / "gate")
    running = Search(toy, *FLAGS, "--no-preflight", env=gate.environment)
    gate.wait()
    candidate = toy.run_dir("run") / "cand" / "e000001"
    assert "treewright-private" in (candidate / ".git").read_text()
    running.signal(signal.SIGKILL)
    running.child.communicate()
    pointer = (candidate / ".git").read_text()
    trees = Worktrees(toy.path, toy.run_dir("run"), "run")
    trees.pristine_candidate("e000001", toy.git("rev-parse", "HEAD").strip())
    now = git(candidate, "rev-parse", "--absolute-git-dir").strip()
    assert pointer == f"gitdir: {now}/treewright-private\n"
    gate.open()
    finish(toy)
    assert validate(toy.run_dir("run"), toy.path) == []


@pytest.fixture
def worktree(toy: ToyRepository, tmp_path: Path) -> Path:
    trees = Worktrees(toy.path, tmp_path / "run", "run")
    return trees.add_candidate("e1", toy.git("rev-parse", "HEAD").strip())


def test_submodules_fetched_by_one_command_are_gone_for_the_next(
    toy: ToyRepository, tmp_path: Path
) -> None:
    """Files that the tests left in the directory of a submodule are not part of the commit."""
    library = ToyRepository.create(tmp_path / "library")
    toy.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
            str(library.path), "lib")  # fmt: skip
    commit = toy.commit("a submodule")
    trees = Worktrees(toy.path, tmp_path / "run", "run")
    place = trees.add_candidate("e1", commit)
    fetch = "git -c protocol.file.allow=always submodule --quiet update --init"
    for _ in ("tests", "sweep"):
        assert list((place / "lib").iterdir()) == []
        with private_repository(place):
            subprocess.run(f"{fetch} && git -C lib log -1 -q", shell=True, cwd=place, check=True)
            fetched = (place / "lib" / "params.txt").read_text()
            assert fetched == (library.path / "params.txt").read_text()
            (place / "lib" / "params.txt").write_text("A 99.0\n")
            (place / "lib" / "answers.py").write_text("x")
        place = trees.pristine_candidate("e1", commit)
    assert list((place / "lib").iterdir()) == []
    trees.remove_candidate("e1")
    assert list(toy.path.glob(".git/worktrees/*")) == []


def test_a_worktree_of_another_repository_is_left_alone(toy: ToyRepository, worktree: Path) -> None:
    before = shared(toy)
    inside = private_repository(worktree)
    inside.__enter__()
    shutil.rmtree(worktree)
    worktree.symlink_to(toy.path)
    with pytest.raises(GitError, match="was removed or replaced"):
        inside.__exit__(None, None, None)
    assert shared(toy) == before
    worktree.unlink()


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_the_private_repository_is_complete(tmp_path: Path, kind: str) -> None:
    repo = ToyRepository(tmp_path / "a repo")
    repo.path.mkdir()
    repo.git("init", "-q", "-b", "main", f"--object-format={kind}")
    repo.write("a file", "x\n")
    commit = repo.commit("first")
    place = Worktrees(repo.path, tmp_path / "run", "run").add_candidate("e1", commit)
    inside = ToyRepository(place)
    inside.git("checkout", "-q", "--detach")
    with private_repository(place) as unchanged:
        assert inside.git("rev-parse", "main", "HEAD").split() == [commit, commit]
        assert inside.git("status", "--porcelain") == ""
        inside.write("a file", "y\n")
        inside.commit("second")
        assert inside.git("fsck") == ""
        assert unchanged()
        (place / ".git").unlink()
        assert not unchanged()
    assert inside.git("rev-parse", "HEAD").strip() == commit
    assert inside.git("status", "--porcelain") == ' M "a file"\n'


def test_a_repository_with_a_separate_git_directory_keeps_its_refs(
    toy: ToyRepository, tmp_path: Path
) -> None:
    """As in a submodule, `.git` is a file, and no ref is shared with worktrees."""
    toy.git("init", "-q", "--separate-git-dir", str(tmp_path / "elsewhere.git"))
    with private_repository(toy.path) as unchanged:
        toy.git("branch", "mine")
        assert toy.git("log", "--format=%s").strip() == "A repository to improve"
        assert unchanged()
    assert toy.git("branch", "--format=%(refname:short)").split() == ["main"]
