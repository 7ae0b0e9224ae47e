"""Refs read from files are those that git lists."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from treewright.tree.repository import git as git_module
from treewright.tree.repository import refs
from treewright.tree.repository.git import GitError


def listed(repo: ToyRepository) -> dict[str, str]:
    lines = repo.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The git commands that reading refs needed."""
    commands: list[str] = []
    real = git_module.git

    def counting(cwd: Path, *arguments: str, **options) -> str:
        commands.append(arguments[0])
        return real(cwd, *arguments, **options)

    monkeypatch.setattr(refs, "git", counting)
    return commands


def test_of_every_kind(toy: ToyRepository, asked: list[str]) -> None:
    for name in ("a/b", "gone", "moved"):
        toy.git("branch", name)
    toy.git("tag", "-am", "annotated", "v1")
    toy.git("pack-refs", "--all")
    toy.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
    toy.git("symbolic-ref", "refs/remotes/nowhere/HEAD", "refs/remotes/nowhere/main")
    toy.git("update-ref", "refs/remotes/origin/main", "HEAD")
    toy.git("branch", "-D", "gone")
    toy.commit("later")
    toy.git("branch", "-f", "moved", "HEAD")
    toy.git("worktree", "add", "-q", "-b", "aside", "aside")
    toy.git("update-ref", "refs/bisect/bad", "HEAD")  # of the main worktree alone
    for place in (toy, ToyRepository(toy.path / "aside")):
        found = refs.read(place.path)
        assert dict(found.named) == {
            name: commit for name, commit in listed(place).items() if "bisect" not in name
        }
        assert list(found.named) == sorted(found.named)
        assert found.head == f"ref: {place.git('symbolic-ref', 'HEAD').strip()}"
        assert not found.sha256
    assert asked == []


def test_where_head_is(toy: ToyRepository) -> None:
    commit = toy.git("rev-parse", "HEAD").strip()
    assert refs.is_at(toy.path, "refs/heads/main", commit)
    assert not refs.is_at(toy.path, "refs/heads/other", commit)
    assert not refs.is_at(toy.path, None, commit)
    toy.git("checkout", "-q", "--detach")
    assert refs.is_at(toy.path, None, commit)
    assert refs.read(toy.path).head == commit
    toy.git("checkout", "-q", "main")
    toy.commit("later")
    assert not refs.is_at(toy.path, "refs/heads/main", commit)
    assert not refs.is_at(toy.path / "ideas", "refs/heads/main", commit)


def test_what_is_not_plain_is_asked(toy: ToyRepository, asked: list[str]) -> None:
    branch = toy.path / ".git/refs/heads/link"
    branch.symlink_to("main")
    assert dict(refs.read(toy.path).named) == listed(toy)
    assert asked == ["for-each-ref"]
    branch.unlink()
    (toy.path / ".git/refs/heads/main.lock").touch()  # somebody is about to move it
    assert dict(refs.read(toy.path).named) == listed(toy)
    assert asked == ["for-each-ref"]


def test_longer_names(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--object-format=sha256", tmp_path], check=True)
    commit = ToyRepository(tmp_path).commit("first")
    found = refs.read(tmp_path)
    assert found.sha256
    assert list(found.named.values()) == [commit]


def test_no_worktree_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no worktree that git made"):
        refs.read(tmp_path)
