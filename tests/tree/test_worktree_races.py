"""git's worktree commands conflict when they overlap; those of the search run one at a time."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.toy import ToyRepository
from tests.waiting import until
from treewright.kernel.storage import untrusted
from treewright.tree.repository.git import GitError
from treewright.tree.repository.worktrees import Worktrees

SLOW_FILTER = "touch {here}/writing; until test -e {here}/go; do sleep 0.01; done; cat"


def test_a_slow_checkout_does_not_block_other_candidates(toy: ToyRepository, tmp_path) -> None:
    """One candidate's checkout hangs; others are added, removed and repaired meanwhile."""
    commit = toy.git("rev-parse", "HEAD").strip()
    toy.write(".gitattributes", "slow.txt filter=slow\n")
    toy.write("slow.txt", "x\n")
    slow = toy.commit("a file that is slow to write")
    toy.git("config", "filter.slow.smudge", SLOW_FILTER.format(here=tmp_path))
    trees = Worktrees(toy.path, tmp_path / "run", "run")
    with ThreadPoolExecutor() as pool:
        hanging = pool.submit(trees.add_candidate, "slow", slow)
        try:
            until(lambda: (tmp_path / "writing").exists())
            for name in ("e1", "e2"):
                assert (pool.submit(trees.add_candidate, name, commit).result(60) / ".git").exists()
            pool.submit(trees.remove_candidate, "e1").result(60)
            pool.submit(trees.repair, {"n0000": commit}, ["slow", "e2"]).result(60)
            assert not hanging.done()
        finally:
            (tmp_path / "go").touch()
        assert (hanging.result(60) / "slow.txt").read_text() == "x\n"


def test_a_slow_removal_does_not_block_other_candidates(
    toy: ToyRepository, tmp_path, monkeypatch
) -> None:
    commit = toy.git("rev-parse", "HEAD").strip()
    trees = Worktrees(toy.path, tmp_path / "run", "run")
    trees.add_candidate("large", commit)
    removing, go = threading.Event(), threading.Event()
    real = untrusted.remove_tree

    def slowly(path) -> None:
        removing.set()
        assert go.wait(60)
        real(path)

    monkeypatch.setattr(untrusted, "remove_tree", slowly)
    with ThreadPoolExecutor() as pool:
        hanging = pool.submit(trees.remove_candidate, "large")
        try:
            assert removing.wait(60)
            assert pool.submit(trees.add_candidate, "e1", commit).result(60).is_dir()
            assert not hanging.done()
        finally:
            go.set()
        hanging.result(60)
    assert toy.git("worktree", "list").count("\n") == 2
    assert toy.git("for-each-ref", "refs/heads/treewright").count("\n") == 1


def test_many_threads_add_and_remove_candidates_at_once(toy: ToyRepository, tmp_path) -> None:
    trees = Worktrees(toy.path, tmp_path / "run", "run")
    commit = toy.git("rev-parse", "HEAD").strip()
    start = threading.Barrier(16)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            start.wait()
            for turn in range(4):
                name = f"e{number:03d}{turn}"
                path = trees.add_candidate(name, commit)
                assert (path / "params.txt").exists()
                trees.remove_candidate(name)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert toy.git("worktree", "list").count("\n") == 1
    assert toy.git("for-each-ref", "refs/heads/treewright") == ""


def test_pruning_keeps_a_candidate_that_is_being_rewritten(
    toy: ToyRepository, tmp_path, monkeypatch
) -> None:
    """Another evaluation of the run that repairs or removes its worktree prunes, and would consider
    a worktree without `.git` dead."""
    commit = toy.git("rev-parse", "HEAD").strip()
    trees = Worktrees(toy.path, tmp_path / "run", "run")
    path = trees.add_candidate("e1", commit)
    record = (toy.path / ".git" / "worktrees" / "e1").stat().st_ino
    real = untrusted.remove_small_tree
    with ThreadPoolExecutor() as pool:
        others = []

        def meanwhile(which) -> None:
            real(which)
            others.append(pool.submit(trees.repair, {}, ["e1"]))
            with contextlib.suppress(TimeoutError):  # the thread waits for the lock, or has ended
                others[-1].result(1)

        monkeypatch.setattr(untrusted, "remove_small_tree", meanwhile)
        (path / "params.txt").write_text("other bytes\n")
        assert trees.pristine_candidate("e1", commit) == path
        monkeypatch.undo()
        for each in others:
            each.result(60)
    assert len(others) > 3  # in place of each file, and of all files
    assert (path / "params.txt").read_text() == (toy.path / "params.txt").read_text()
    assert (toy.path / ".git" / "worktrees" / "e1").stat().st_ino == record, "it was made again"


# The message of git when a record vanishes between its two reads. A test cannot force that moment:
# this git prints the message a given number of times and then runs the real git.
RECORD_GONE = """#!/bin/sh
if test "$(wc -l < {here}/said)" -lt {times}; then
    echo >> {here}/said
    echo "fatal: Invalid path '{repo}/.git/worktrees/theirs': No such file or directory" >&2
    exit 128
fi
exec {git} "$@"
"""


def put_first(directory, script: str, monkeypatch) -> None:
    directory.mkdir()
    (directory / "git").write_text(script)
    (directory / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")


def test_a_worktree_that_the_user_removes_meanwhile_causes_no_failure(
    toy: ToyRepository, tmp_path, monkeypatch
) -> None:
    commit = toy.git("rev-parse", "HEAD").strip()
    (tmp_path / "said").touch()
    git = shutil.which("git")
    script = RECORD_GONE.format(here=tmp_path, times=5, repo=toy.path, git=git)
    put_first(tmp_path / "bin", script, monkeypatch)
    trees = Worktrees(toy.path, tmp_path / "run", "run")
    trees.add_node("n0000", commit)
    assert (tmp_path / "said").read_text().count("\n") == 5
    assert (trees.node_path("n0000") / "params.txt").exists()


def test_a_record_that_vanishes_every_time_is_an_error(
    toy: ToyRepository, tmp_path, monkeypatch
) -> None:
    commit = toy.git("rev-parse", "HEAD").strip()
    (tmp_path / "said").touch()
    script = RECORD_GONE.format(here=tmp_path, times=10_000, repo=toy.path, git="false")
    put_first(tmp_path / "bin", script, monkeypatch)
    with pytest.raises(GitError, match="Invalid path"):
        Worktrees(toy.path, tmp_path / "run", "run").add_node("n0000", commit)


HALF_MADE = """#!/bin/sh
echo >> {here}/said
if test "$(wc -l < {here}/said)" -gt 5; then
    echo ../.. > "{record}/commondir"
fi
exec {git} "$@"
"""


def test_a_worktree_that_the_user_adds_meanwhile_causes_no_failure(
    toy: ToyRepository, tmp_path, monkeypatch
) -> None:
    """Git creates the files of a record one after the other, and writes to each after creating
    it."""
    commit = toy.git("rev-parse", "HEAD").strip()
    toy.git("worktree", "add", "--detach", str(tmp_path / "theirs"))
    record = toy.path / ".git" / "worktrees" / "theirs"
    (record / "commondir").write_text("")
    script = HALF_MADE.format(here=tmp_path, record=record, git=shutil.which("git"))
    put_first(tmp_path / "bin", script, monkeypatch)
    trees = Worktrees(toy.path, tmp_path / "run", "run")
    trees.add_node("n0000", commit)
    assert (trees.node_path("n0000") / "params.txt").exists()
