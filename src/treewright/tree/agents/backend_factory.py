"""From a role's configuration to its backend, and whether that backend can work here."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.llm import keys
from treewright.llm.endpoint import check_installed, describe
from treewright.tree.agents import prompt_templates, scripted_agent
from treewright.tree.agents.backend import Backend, Role
from treewright.tree.agents.command_agent import CommandAgent, arguments, find_executable, missing
from treewright.tree.agents.patch_coder import PatchCoder
from treewright.tree.agents.presets import PRESETS
from treewright.tree.config import (
    BackendConfig,
    CommandBackend,
    NoBackend,
    OpenaiBackend,
    PatchBackend,
    ScriptedBackend,
)


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
        case CommandBackend():
            return CommandAgent(config)
        case OpenaiBackend():
            check_installed()
            from treewright.tree.agents.chat_agent import ChatAgent  # asyncio takes its time

            return ChatAgent(config)
        case ScriptedBackend():
            return scripted_agent.ScriptedAgent(repo / config.script)


def probe_backend(role: Role, config: BackendConfig, repo: Path) -> tuple[bool, str]:
    """Whether the role could be played here, and a line for people that says why (not).

    Nothing is run or sent: an agent may be present and still be logged out.
    """
    try:
        make_backend(role, config, repo)
        if isinstance(config, CommandBackend | OpenaiBackend):
            prompt_templates.load(role, config.prompt, repo)
        return _probe(role, config, repo)
    except TreewrightError as error:
        return False, str(error)


def _probe(role: Role, config: BackendConfig, repo: Path) -> tuple[bool, str]:
    match config:
        case NoBackend():
            return True, "left out"
        case PatchBackend():
            return True, "applies the patch that the idea carries"
        case CommandBackend():
            name = arguments(config, role)[0]
            found = find_executable(name, repo)
            if found is None:
                return False, missing(name, PRESETS[config.preset] if config.preset else None)
            return True, f"runs {found}"
        case OpenaiBackend():
            return True, f"asks {describe(config.endpoint)} {keys.describe_key(config.endpoint)}"
        case ScriptedBackend():
            entries = len(scripted_agent.load(repo / config.script))
            return True, f"{entries} scripted entries in {config.script}"
