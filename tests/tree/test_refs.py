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


@pytest.mark.parametrize("name", ["a copy", ".hidden", "a..b", "a~1", "dot."])
def test_a_file_that_has_no_name_of_a_ref_is_none(toy: ToyRepository, name: str) -> None:
    """As a synchronised folder leaves them."""
    (toy.path / ".git/refs/heads" / name).write_text(toy.git("rev-parse", "HEAD"))
    assert dict(refs.read(toy.path).named) == listed(toy)


def test_longer_names(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", "--object-format=sha256", tmp_path], check=True)
    commit = ToyRepository(tmp_path).commit("first")
    found = refs.read(tmp_path)
    assert found.sha256
    assert list(found.named.values()) == [commit]


def test_no_worktree_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="no worktree that git made"):
        refs.read(tmp_path)


def test_those_below_a_name(toy: ToyRepository, asked: list[str]) -> None:
    below = "refs/heads/a/"
    assert refs.below(toy.path, below) == {}
    for name in ("a/b", "a/c/d", "ab", "a/gone", "a/moved"):
        toy.git("branch", name)
    toy.git("pack-refs", "--all")
    toy.git("branch", "-D", "a/gone")
    toy.commit("later")
    toy.git("branch", "-f", "a/moved", "HEAD")
    toy.git("branch", "a/new")
    expected = {name: at for name, at in listed(toy).items() if name.startswith(below)}
    assert refs.below(toy.path, below) == expected
    assert len(expected) == 4
    assert asked == []
    toy.git("symbolic-ref", "refs/heads/a/other", "refs/heads/main")
    expected = {name: at for name, at in listed(toy).items() if name.startswith(below)}
    assert refs.below(toy.path, below) == expected
    assert asked == ["for-each-ref"]


def test_the_commit_of_a_branch_that_somebody_packs_is_for_git_to_say(toy: ToyRepository) -> None:
    commit = toy.git("rev-parse", "HEAD").strip()
    assert refs.commit_of(toy.path, "refs/heads/main") == commit
    assert refs.commit_of(toy.path, "refs/heads/other") is None
    toy.git("pack-refs", "--all")
    assert refs.commit_of(toy.path, "refs/heads/main") is None


def test_a_name_that_is_free(toy: ToyRepository, asked: list[str]) -> None:
    mine = "refs/heads/a/b/c"
    assert refs.is_free(toy.path, mine)
    for taken in ("a", "a/b", "a/b/c", "a/b/c/d"):
        toy.git("branch", taken)
        assert not refs.is_free(toy.path, mine), taken
        toy.git("pack-refs", "--all")
        assert not refs.is_free(toy.path, mine), f"{taken}, packed"
        toy.git("branch", "-D", taken)
        assert refs.is_free(toy.path, mine), taken
    for other in ("a/b/cc", "a/b/d", "ab", "b/a/b/c"):
        toy.git("branch", other)
    assert refs.is_free(toy.path, mine)
    toy.git("pack-refs", "--all")
    assert refs.is_free(toy.path, mine)
    toy.git("symbolic-ref", mine, "refs/heads/nowhere")
    assert not refs.is_free(toy.path, mine)
    toy.git("switch", "-q", "--orphan", "new")
    assert not refs.is_free(toy.path, "refs/heads/new")
    assert asked == []


def test_where_refs_are_in_another_format_no_name_is_known_to_be_free(toy: ToyRepository) -> None:
    heads = toy.path / ".git/refs/heads"
    heads.rename(toy.path / "heads")
    heads.write_text("this repository uses the reftable format\n")
    assert not refs.is_free(toy.path, "refs/heads/a")
