"""Backends without a model: `patch` applies the idea's own patch, `scripted` plays a JSON file.

A script is for tests, rehearsals and demonstrations. It is a list of entries; the first entry that
fits the role, the round and the idea is the reply. docs/agents.md describes the fields.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text import jsontext
from treewright.llm.usage import Usage
from treewright.tree.agents.backend import AgentFailure, Role, RoleReply, RoleRequest
from treewright.tree.agents.edits import FileEdit, apply_patch, write_all
from treewright.tree.ideas.idea_text import patches
from treewright.tree.records import usage_log


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


class ScriptedError(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A failure to report instead of a reply."""

    code: str
    message: str
    retryable: bool = False


class ScriptEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reply for a role.

    `round`, and `when` (a part of the idea's text), restrict the entry; both are optional.
    """

    role: Role
    text: str = ""
    round: int | None = None
    when: str = ""
    files: dict[str, str | None] = {}
    patch: str = ""
    usage: Usage = Usage()
    error: ScriptedError | None = None

    def fits(self, request: RoleRequest) -> bool:
        return (
            self.role == request.role
            and self.round in (None, request.round)
            and self.when in request.idea
        )


class ScriptedAgent:
    """The backend `scripted`."""

    def __init__(self, script: Path) -> None:
        self._script = script
        self._entries = load_script(script)

    def run(self, request: RoleRequest) -> RoleReply:
        entry = next((entry for entry in self._entries if entry.fits(request)), None)
        if entry is None:
            raise AgentFailure(
                "script_missing",
                f"{self._script} has no entry for the {request.role} in round {request.round}",
            )
        if entry.error is not None:
            error = entry.error
            raise AgentFailure(error.code, error.message, retryable=error.retryable)
        write_all([FileEdit(path, text) for path, text in entry.files.items()], request.worktree)
        if entry.patch:
            apply_patch(entry.patch, request.worktree)
        usage_log.add(request.log_dir, entry.usage, role=request.role)
        return RoleReply(entry.text, entry.usage)


def load_script(script: Path) -> list[ScriptEntry]:
    """Return the entries of a script.

    Raises:
        UsageError: the file cannot be read, or has another form.
    """
    try:
        return jsontext.decode(script.read_bytes(), type=list[ScriptEntry])
    except OSError as error:
        raise UsageError(f"cannot read the agent script {script}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise UsageError(f"{script}: {error}") from None
