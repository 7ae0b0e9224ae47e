"""The context of a commit's commands: seeds, hidden variables, limits and slots."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.kernel.procs.containment import Limits
from treewright.llm import keys
from treewright.llm.endpoint import password_variable
from treewright.tree.agents.presets import agent_keys
from treewright.tree.config import BackendConfig, CommandBackend, Config
from treewright.tree.guard.commands import SLOT, CommandContext
from treewright.tree.guard.isolation import Isolation
from treewright.tree.guard.root_checkout import RootVersion
from treewright.tree.repository.worktrees import Worktrees


class SweepError(TreewrightError):
    """A sweep that the search itself depends on failed; no candidate is to blame."""


def repeat_seed(seed: int, number: int) -> int:
    """Return the TREEWRIGHT_SEED of a repeat; the first repeat has the seed of the run.

    Candidate and parent have the same seed in the same repeat.
    """
    if number == 1:
        return seed
    digest = hashlib.sha256(f"{seed}:{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def root_context(
    config: Config,
    trees: Worktrees,
    worktree: Path,
    commit: str,
    log_dir: Path,
    owner: str,
    cancel: threading.Event | None,
) -> CommandContext:
    """Return the context for commands on the root commit, without protected paths."""
    return CommandContext(
        worktree,
        log_dir,
        config.seed,
        owner,
        cancel,
        hidden_variables=secret_variables(config),
        limits=limits(config),
        isolation=Isolation.of(config, trees.repo, trees.run_dir),
        root=RootVersion(trees.repo, commit),
    )


def slot_variables(config: Config, slot: int | None) -> dict[str, str]:
    """Return the variables of a slot: its number, and those of `[slots]` in the configuration."""
    if slot is None:
        return {}
    own = {name: values[slot] for name, values in config.slots.items() if slot < len(values)}
    return {**own, SLOT: str(slot)}


def key_variables(config: Config) -> dict[str, bool]:
    """Return the variables with keys of endpoints, and for each whether it must be set."""
    variables = [keys.variable_for(endpoint) for endpoint in config.endpoints]
    passwords = [password_variable(endpoint.base_url) for endpoint in config.endpoints]
    found = {name: True for name in passwords if name is not None}
    return found | {v.name: v.required for v in variables if v is not None}


def secret_variables(config: Config) -> frozenset[str]:
    """Return the variables with API keys, which generated code must not see.

    Keys of AWS are among them only if they are the agent's: a sweep may need them for its data.
    """
    found = frozenset(key_variables(config)) | keys.listed_variables()
    if any(isinstance(backend, CommandBackend) for backend in _backends(config)):
        found |= agent_keys()
    return found


def _backends(config: Config) -> tuple[BackendConfig, ...]:
    return (config.agents.planner, config.agents.coder, config.agents.reviewer)


def limits(config: Config) -> Limits:
    """Return the limits of tests and sweeps."""
    return Limits(config.limits.memory_mb, config.limits.file_mb)
