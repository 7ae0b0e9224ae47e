"""Removing many candidates at once removes exactly their worktrees and branches."""

from __future__ import annotations

import shutil

from tests.toy import ToyRepository
from treewright.tree.repository.worktrees import Worktrees


def test_only_the_named_candidates_are_removed(toy: ToyRepository) -> None:
    trees = Worktrees(toy.path, toy.run_dir("r"), "r")
    commit = toy.git("rev-parse", "HEAD").strip()
    for name in ("e1", "e2", "e3"):
        trees.add_candidate(name, commit)
    shutil.rmtree(trees.candidate_path("e2"))  # its branch and worktree record are left
    trees.remove_candidates({"e1", "e2", "never-made"})
    branches = toy.git("for-each-ref", "--format=%(refname:short)", "refs/heads/treewright")
    assert branches.split() == ["treewright/r/cand/e3"]
    assert [path.name for path in (toy.run_dir("r") / "cand").iterdir()] == ["e3"]
