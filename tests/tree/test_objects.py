"""Object names that are computed without git, and staged changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from treewright.tree.repository import objects
from treewright.tree.repository.excluding import hide_from_status
from treewright.tree.repository.git import git
from treewright.tree.repository.objects import Listing
from treewright.tree.repository.staging import Staged, differences, stage_all
from treewright.tree.repository.worktrees import Worktrees, resolve


@pytest.fixture
def many(toy: ToyRepository) -> ToyRepository:
    """Create files, links and directories with names that git sorts differently from Python."""
    for name in ("a/b/c", "a.b", "a-b/x", "a0", "ü/é f", "run.sh", "sub/deep/er/x"):
        toy.write(name, name)
    (toy.path / "run.sh").chmod(0o755)
    (toy.path / "link").symlink_to("a/b")
    (toy.path / "broken").symlink_to("nowhere")
    Path(os.fsdecode(os.fsencode(toy.path) + b"/not\xffutf")).write_text("x")
    toy.commit("files of every kind")
    hide_from_status(toy.path, ".treewright")
    return toy


@pytest.fixture
def candidate(many: ToyRepository) -> Path:
    trees = Worktrees(many.path, many.run_dir("run"), "run")
    return trees.add_candidate("e1", many.git("rev-parse", "HEAD").strip())


def head(repo: ToyRepository) -> Listing:
    return objects.listing(repo.path, repo.git("rev-parse", "HEAD").strip())


def _replace_link(path: Path, target: str) -> None:
    path.unlink()
    path.symlink_to(target)


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_trees_and_commits_have_gits_names(many: ToyRepository, tmp_path: Path, kind: str) -> None:
    other = ToyRepository(tmp_path / "other")
    other.path.mkdir()
    other.git("init", "-q", f"--object-format={kind}")
    for name in ("a/b/c", "a.b", "a-b/x", "a0", "a/b.c"):
        other.write(name, name)
    (other.path / "link").symlink_to("a")
    other.commit("x")
    for repo in (many, other):
        made = resolve(repo.path, "HEAD")
        assert objects.tree_name(head(repo).entries, len(made.tree)) == made.tree


@pytest.mark.parametrize("renames", ["false", "true", "copies"])
def test_a_staged_change_has_the_tree_of_the_commit(
    many: ToyRepository, candidate: Path, renames: str
) -> None:
    many.git("config", "diff.renames", renames)
    parent = resolve(candidate, "HEAD").commit
    (candidate / "a0").rename(candidate / "a new\nname")
    (candidate / "a/b/c").unlink()
    (candidate / "a/b").rmdir()
    (candidate / "a/b").write_text("a file now")
    (candidate / "a.b").unlink()
    (candidate / "a.b").mkdir()
    (candidate / "a.b" / "x").write_text("a directory now")
    (candidate / "run.sh").chmod(0o644)
    _replace_link(candidate / "link", "a")
    (candidate / "params.txt").write_text((candidate / "params.txt").read_text() + "more\n")
    (candidate / "a copy").write_text((candidate / "params.txt").read_text())
    staged = stage_all(candidate)
    asked = ("diff", "--cached", "--name-only", "--no-renames", "-z", "HEAD")
    assert sorted(staged.paths) == sorted(git(candidate, *asked).split("\0")[:-1])
    assert staged.stat == git(candidate, "diff", "--cached", "--stat", "HEAD").rstrip("\n")
    git(candidate, "commit", "-q", "-m", "x")
    made = resolve(candidate, "HEAD")
    differing = differences(many.path, [(resolve(candidate, parent).tree, made.tree)])
    assert set(differing[0]) == set(staged.changes)


def test_an_empty_stage_has_no_change() -> None:
    assert Staged.parse("") == Staged((), "")
