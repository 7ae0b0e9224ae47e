"""The coder backend `patch`: it applies the patch that the idea carries, without a model."""

from __future__ import annotations

from treewright.tree.agents.backend import AgentFailure, RoleReply, RoleRequest
from treewright.tree.agents.edits import apply_patch
from treewright.tree.ideas.idea_text import patches


class PatchCoder:
    """Applies the idea's `diff` blocks, in order, as one patch.

    Git applies the patch: all hunks or none, nothing outside the worktree, nothing through a link,
    and nothing in `.git`.
    """

    def run(self, request: RoleRequest) -> RoleReply:
        found = patches(request.idea)
        if not found:
            raise AgentFailure(
                "patch_missing",
                "the idea has no ```diff block; the patch backend needs one "
                "(or set agents.coder to another backend)",
            )
        note = apply_patch("".join(found), request.worktree)
        return RoleReply(f"Applied the idea's own patch{note}.")
