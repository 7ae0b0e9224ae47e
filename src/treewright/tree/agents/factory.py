"""From a role's configuration to its backend, and whether that backend can work here."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.tree.agents.base import Backend, Role
from treewright.tree.agents.patch import PatchCoder
from treewright.tree.agents.scripted import ScriptedAgent
from treewright.tree.config import BackendConfig, NoBackend, PatchBackend, ScriptedBackend


def make_backend(role: Role, config: BackendConfig, repo: Path) -> Backend | None:
    """None means that the role is left out."""
    match config:
        case NoBackend():
            if role == "coder":
                raise UsageError("agents.coder cannot be `none`: somebody must make the change")
            return None
        case PatchBackend():
            if role != "coder":
                raise UsageError(f"agents.{role} cannot be `patch`: only the coder applies patches")
            return PatchCoder()
        case ScriptedBackend():
            return ScriptedAgent(repo / config.script)
        case _:
            raise UsageError(f"agents.{role}: this backend is not available")
