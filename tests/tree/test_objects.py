"""What a commit is and what is in it, known without asking git, is what git says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.toy import ToyRepository
from treewright.tree.repository import listing, objects
from treewright.tree.repository.excluding import hide_from_status
from treewright.tree.repository.git import git
from treewright.tree.repository.listing import Change, Listing
from treewright.tree.repository.staging import Staged, stage_all
from treewright.tree.repository.worktrees import Worktrees, resolve


@pytest.fixture
def many(toy: ToyRepository) -> ToyRepository:
    """Files, links and directories whose names git sorts in its own way."""
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
    return listing.listing(repo.path, repo.git("rev-parse", "HEAD").strip())


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
        assert objects.tree_of(repo.path / ".git", made.commit) == made.tree
        assert objects.tree_name(head(repo).entries, len(made.tree)) == made.tree
    repo = other.path / ".git"
    assert objects.tree_of(repo, made.tree) is None
    assert objects.tree_of(repo, "f" * len(made.tree)) is None
    other.git("gc", "-q")
    assert objects.tree_of(repo, made.commit) is None, "it is in a pack now"


def test_a_commit_in_a_file_that_was_replaced_is_not_believed(toy: ToyRepository) -> None:
    first, second = toy.git("rev-parse", "HEAD").strip(), toy.commit("another")
    common = toy.path / ".git"
    places = [common / "objects" / name[:2] / name[2:] for name in (first, second)]
    forged = places[0].read_bytes()
    places[1].chmod(0o644)
    for data in (forged, forged[:20], b"", b"nothing packed"):
        places[1].write_bytes(data)
        assert objects.tree_of(common, second) is None


@pytest.mark.parametrize("renames", ["false", "true", "copies"])
def test_a_change_says_what_the_commit_will_be(
    many: ToyRepository, candidate: Path, renames: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many.git("config", "diff.renames", renames)
    parent = resolve(candidate, "HEAD").commit
    listing.listing(many.path, parent)
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
    expected = dict(listing.listing(many.path, made.commit).entries)
    listing._kept.pop((many.path, made.commit))
    listing.derive(many.path, parent, staged.changes, made.commit, made.tree)
    monkeypatch.setattr(listing, "git", None)
    assert dict(listing.listing(many.path, made.commit).entries) == expected


def test_a_wrong_derivation_is_not_believed(toy: ToyRepository) -> None:
    parent = toy.git("rev-parse", "HEAD").strip()
    toy.write("params.txt", "other\n")
    commit = toy.commit("other")
    tree = resolve(toy.path, commit).tree
    for changes in ([], [Change("params.txt", None)], [Change("params.txt/x", ("100644", tree))]):
        listing.derive(toy.path, parent, changes, commit, tree)
        assert (toy.path, commit) not in listing._kept
    assert "params.txt" in listing.listing(toy.path, commit).entries


def test_nothing_staged_says_nothing() -> None:
    assert Staged.read("") == Staged((), "")
