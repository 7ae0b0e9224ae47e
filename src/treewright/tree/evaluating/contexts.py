"""The commands of a commit: the context that they run in, and the logs that they leave."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.kernel.procs.capped_log import last_lines
from treewright.kernel.procs.containment import Limits
from treewright.kernel.procs.process import ProcessResult
from treewright.kernel.storage import atomic, untrusted
from treewright.kernel.storage.run_directory import STATE_DIR
from treewright.llm import keys
from treewright.llm.endpoint import password_variable
from treewright.tree.agents.presets import agent_keys
from treewright.tree.config import CommandBackend, Config
from treewright.tree.evaluating.request import Request
from treewright.tree.guard.baselines import DecidingFiles
from treewright.tree.guard.commands import SLOT, CommandContext
from treewright.tree.guard.isolation import Isolation
from treewright.tree.guard.protected_files import RootVersion
from treewright.tree.repository.worktrees import Worktrees

_LAST_BYTES = 4096
_LARGEST_LOG = 1 << 40
_FAILED_LOGS = "failed_logs"


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


def candidate_context(
    request: Request,
    worktree: Path,
    log_dir: Path,
    cancel: threading.Event | None,
    deciding: DecidingFiles | None,
) -> CommandContext:
    """Return the context for the tests and the sweep that a request asks for."""
    config, repo = request.config, Path(request.repo)
    return CommandContext(
        worktree,
        log_dir,
        request.seed,
        request.owner,
        cancel,
        hidden_variables=secret_variables(config),
        limits=limits(config),
        variables=slot_variables(config, request.slot),
        isolation=Isolation.of(config, repo, Path(request.run_dir)),
        root=RootVersion(repo, request.root_commit, request.protected_paths),
        deciding=deciding,
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
    agents = config.agents
    backends = (agents.planner, agents.coder, agents.reviewer)
    if any(isinstance(backend, CommandBackend) for backend in backends):
        found |= agent_keys()
    return found


def limits(config: Config) -> Limits:
    """Return the limits of tests and sweeps."""
    return Limits(config.limits.memory_mb, config.limits.file_mb)


def explain_end(done: ProcessResult, what: str, log: Path) -> str:
    """Return how a command ended, with the last lines of its log."""
    said = last_log_lines(log)
    return done.explain(what) + (f": {said}" if said else "")


def last_log_lines(log: Path) -> str:
    """Return the last lines of a log, as many as fit into a message."""
    return last_lines(end_of(log).decode("utf-8", "replace"))


def keep_log(trees: Worktrees, log: Path) -> str:
    """Copy the log of a command that failed on the root, because such a run is removed.

    Returns the path of the copy in brackets, for the end of a message.
    """
    kept = trees.repo / STATE_DIR / _FAILED_LOGS / f"{trees.run_dir.name}_{log.name}"
    try:
        data = untrusted.read(log, _LARGEST_LOG)
        atomic.make_directory(kept.parent)
        atomic.write_bytes(kept, data)
    except OSError:
        return ""
    return f" (log: {kept})"


def end_of(log: Path) -> bytes:
    """Return the last bytes of a log."""
    try:
        with untrusted.open_plain(log, _LARGEST_LOG) as file:
            file.seek(max(0, file.seek(0, 2) - _LAST_BYTES))
            return file.read(_LAST_BYTES)
    except OSError as error:  # the command replaced the log by something else
        return str(error).encode()
