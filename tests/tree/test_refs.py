"""Tests of HEAD, refs and locks of a repository and its worktrees."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from treewright.tree.repository import refs
from treewright.tree.repository.git import GitError


def test_refs_of_a_repository_and_of_its_worktree(toy: ToyRepository) -> None:
    toy.git("branch", "a/b")
    toy.git("tag", "-am", "annotated", "v1")
    toy.git("pack-refs", "--all")
    toy.git("branch", "new")
    toy.git("worktree", "add", "-q", "-b", "aside", "aside")
    lines = toy.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    expected = dict(line.split(" ") for line in lines)
    for place, branch in ((toy.path, "main"), (toy.path / "aside", "aside")):
        found = refs.read_refs(place)
        assert dict(found.named) == expected
        assert found.head == refs.Head(expected[f"refs/heads/{branch}"], f"refs/heads/{branch}")
        assert not found.is_sha256


def test_a_detached_head_has_no_branch(toy: ToyRepository) -> None:
    commit = toy.git("rev-parse", "HEAD").strip()
    toy.git("checkout", "-q", "--detach")
    assert refs.read_head(toy.path) == refs.Head(commit, None)


def test_sha256_object_names(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--object-format=sha256", tmp_path], check=True)
    commit = ToyRepository(tmp_path).commit("first")
    found = refs.read_refs(tmp_path)
    assert found.is_sha256
    assert list(found.named.values()) == [commit]


def test_a_directory_that_is_not_a_worktree_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="not a worktree made by git"):
        refs.read_refs(tmp_path)


def test_a_pipe_in_place_of_head_is_an_error(toy: ToyRepository) -> None:
    toy.git("worktree", "add", "-q", "--detach", "aside")
    head = toy.path / ".git/worktrees/aside/HEAD"
    head.unlink()
    os.mkfifo(head)
    with pytest.raises(GitError, match="HEAD is a pipe"):
        refs.read_head(toy.path / "aside")


def test_refs_below_a_prefix(toy: ToyRepository) -> None:
    assert refs.refs_below(toy.path, "refs/heads/a/") == {}
    for name in ("a/b", "a/c/d", "ab"):
        toy.git("branch", name)
    commit = toy.git("rev-parse", "HEAD").strip()
    expected = {"refs/heads/a/b": commit, "refs/heads/a/c/d": commit}
    assert refs.refs_below(toy.path, "refs/heads/a/") == expected
