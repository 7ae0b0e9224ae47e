"""Backends from the configuration of a role, and checks of whether a backend can work."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.llm import keys
from treewright.llm.endpoint import check_installed, describe
from treewright.tree.agents import offline_agents, prompts
from treewright.tree.agents.backend import Backend, Role
from treewright.tree.agents.command_agent import (
    CommandAgent,
    argument_template,
    explain_missing,
    find_executable,
)
from treewright.tree.agents.offline_agents import PatchCoder
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
    """Return the backend of a role; None for a role that is left out.

    Raises:
        UsageError: the role cannot have this backend, or one of its files cannot be read.
    """
    match config:
        case NoBackend():
            if role == "coder":
                raise UsageError("agents.coder cannot be `none`: a coder has to make the change")
            return None
        case PatchBackend():
            if role != "coder":
                raise UsageError(f"agents.{role} cannot be `patch`: only the coder applies patches")
            return PatchCoder()
        case CommandBackend():
            return CommandAgent(config)
        case OpenaiBackend():
            check_installed()
            from treewright.tree.agents.chat_agent import ChatAgent  # importing asyncio is slow

            return ChatAgent(config)
        case ScriptedBackend():
            return offline_agents.ScriptedAgent(repo / config.script)


def probe_backend(role: Role, config: BackendConfig, repo: Path) -> tuple[bool, str]:
    """Return whether a backend can work here, and a line with the reason for the user.

    No agent runs and no request is sent, so an agent that is logged out counts as able.
    """
    try:
        make_backend(role, config, repo)
        if isinstance(config, CommandBackend | OpenaiBackend):
            prompts.load_template(role, config.prompt, repo)
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
            name = argument_template(config, role)[0]
            found = find_executable(name, repo)
            if found is None:
                preset = PRESETS[config.preset] if config.preset else None
                return False, explain_missing(name, preset)
            return True, f"runs {found}"
        case OpenaiBackend():
            return True, f"asks {describe(config.endpoint)} {keys.describe_key(config.endpoint)}"
        case ScriptedBackend():
            entries = len(offline_agents.load_script(repo / config.script))
            return True, f"{entries} scripted entries in {config.script}"
