"""The coder that needs no model: it applies the patch which the idea carries.

`apply` is also how the edits of a chat model reach the worktree. It is git that
applies: all hunks or none, nothing outside the worktree, nothing through a symlink,
nothing in `.git`.
"""

from __future__ import annotations

from pathlib import Path

from treewright.tree.agents.backend import AgentFailure, RoleReply, RoleRequest
from treewright.tree.agents.line_endings import adapt
from treewright.tree.ideas.idea_text import patches
from treewright.tree.repository.git import try_git


class PatchCoder:
    """Applies the idea's `diff` blocks, in order, as one patch."""

    def run(self, request: RoleRequest) -> RoleReply:
        found = patches(request.idea)
        if not found:
            raise AgentFailure(
                "patch_missing",
                "the idea has no ```diff block; the patch backend needs one "
                "(or set agents.coder to another backend)",
            )
        how = apply("".join(found), request.worktree)
        return RoleReply(f"Applied the idea's own patch{how}.")


def apply(patch: str, worktree: Path) -> str:
    """Applies a unified diff or changes nothing. Says in words if it had to be repaired.

    People and models miscount the lines of a hunk; git can count them itself, so a
    patch is refused only when its lines do not match the files. Without context lines
    it takes the patch to be for a whole file, unless told that context was left out.
    """
    patch = adapt(patch, worktree)
    refused = _git_apply(patch, worktree)
    if refused is None:
        return ""
    if _git_apply(patch, worktree, "--recount") is None:
        return " (with its hunk lengths counted again)"
    if _has_no_context(patch):
        if _git_apply(patch, worktree, "--unidiff-zero") is None:
            return " (it has no context lines: placed by its line numbers)"
        if _git_apply(patch, worktree, "--unidiff-zero", "--recount") is None:
            return " (it has no context lines: placed by its line numbers, lengths counted again)"
    raise AgentFailure("patch_failed", f"the patch does not apply: {refused}")


def _has_no_context(patch: str) -> bool:
    """Whether every hunk has added and removed lines only."""
    in_hunk = found = False
    for line in patch.rstrip("\r\n").split("\n"):
        if line.startswith("@@"):
            in_hunk = found = True
        elif line.startswith("diff "):
            in_hunk = False
        elif in_hunk and not line.startswith(("+", "-", "\\")):
            return False
    return found


def _git_apply(patch: str, worktree: Path, *options: str) -> str | None:
    """None if applied, else git's reason."""
    done = try_git(worktree, "apply", "--whitespace=nowarn", *options, "-", stdin=patch)
    if done.returncode == 0:
        return None
    said = done.stderr.strip().splitlines()
    return said[0].removeprefix("error: ") if said else f"git apply exited with {done.returncode}"
