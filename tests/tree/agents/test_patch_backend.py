"""The patch backend: git applies it whole or not at all, inside the worktree only."""

from __future__ import annotations

from pathlib import Path

import pytest

from treewright.tree.agents.backend import AgentFailure, RoleRequest
from treewright.tree.agents.edits import apply_patch
from treewright.tree.agents.offline_agents import PatchCoder


def code(idea: str, worktree: Path) -> str:
    request = RoleRequest("coder", 1, "", idea, worktree, worktree.parent / "logs")
    return PatchCoder().run(request).text


def rate(new: str, header: str = "@@ -1,2 +1,2 @@") -> str:
    """A patch of the first line of model.py."""
    return f"--- a/model.py\n+++ b/model.py\n{header}\n-RATE = 0.1\n+{new}\n DEPTH = 3\n"


def test_several_blocks_are_one_patch(worktree: Path):
    one = rate("RATE = 0.5")
    two = "--- /dev/null\n+++ b/notes/new.txt\n@@ -0,0 +1 @@\n+hello\n"
    code(f"# I\n\n```diff\n{one}```\n\nand\n\n~~~patch\n{two}~~~\n", worktree)
    assert (worktree / "model.py").read_text().startswith("RATE = 0.5\n")
    assert (worktree / "notes/new.txt").read_text() == "hello\n"


def test_missing_patch(worktree: Path):
    with pytest.raises(AgentFailure) as caught:
        code("# Words only\n\n```python\nx = 1\n```\n", worktree)
    assert caught.value.code == "patch_missing"


def test_nothing_is_applied_when_one_hunk_fails(worktree: Path, run_git):
    good = rate("RATE = 0.5")
    bad = "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-# Not the title\n+# Title\n"
    with pytest.raises(AgentFailure) as caught:
        code(f"```diff\n{good}{bad}```\n", worktree)
    assert caught.value.code == "patch_failed"
    assert "README.md" in caught.value.message
    assert run_git(worktree, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/tmp/outside.txt", ".git/config", "link/outside.txt", ".git"]
)
def test_patches_cannot_leave_the_worktree(path: str, worktree: Path, tmp_path: Path):
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (worktree / "link").symlink_to(outside)
    git_file = (worktree / ".git").read_bytes()
    patch = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+mine\n"
    with pytest.raises(AgentFailure) as caught:
        apply_patch(patch, worktree)
    assert caught.value.code == "patch_failed"
    assert list(outside.iterdir()) == []
    assert not (worktree.parent / "outside.txt").exists()
    assert (worktree / ".git").read_bytes() == git_file


def test_miscounted_hunk_is_recounted_and_said(worktree: Path):
    patch = rate("RATE = 0.5", header="@@ -1,9 +1,7 @@")
    assert "counted again" in code(f"```diff\n{patch}```\n", worktree)


def test_lf_patch_on_a_crlf_file_keeps_crlf(worktree: Path):
    (worktree / "model.py").write_bytes(b"A = 1\r\nB = 2\r\n")
    apply_patch(
        "--- a/model.py\n+++ b/model.py\n@@ -1,2 +1,2 @@\n-A = 1\n+A = 5\n B = 2\n", worktree
    )
    assert (worktree / "model.py").read_bytes() == b"A = 5\r\nB = 2\r\n"


def test_patch_applies_in_a_repository_with_whitespace_rules(worktree: Path, run_git):
    """A user's `apply.whitespace = error` must not decide which ideas can be tried."""
    run_git(worktree, "config", "apply.whitespace", "error")
    apply_patch(rate("RATE = 0.5   "), worktree)
    assert (worktree / "model.py").read_text().startswith("RATE = 0.5   \n")


@pytest.mark.parametrize("header", ["@@ -2 +2 @@", "@@ -2,4 +2,7 @@"])
def test_a_patch_without_context_is_placed_by_its_lines_and_said(header: str, worktree: Path):
    """What `git diff -U0` writes, and models that save words."""
    patch = f"--- a/model.py\n+++ b/model.py\n{header}\n-DEPTH = 3\n+DEPTH = 4\n"
    assert "no context lines" in code(f"```diff\n{patch}```\n", worktree)
    assert (worktree / "model.py").read_text().startswith("RATE = 0.1\nDEPTH = 4\n\n")


def test_a_patch_without_context_must_still_match(worktree: Path, run_git):
    patch = "--- a/model.py\n+++ b/model.py\n@@ -2 +2 @@\n-DEPTH = 9\n+DEPTH = 4\n"
    with pytest.raises(AgentFailure, match="does not apply"):
        apply_patch(patch, worktree)
    assert run_git(worktree, "status", "--porcelain") == ""
