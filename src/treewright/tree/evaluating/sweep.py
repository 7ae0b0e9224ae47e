"""Running a repository's sweep and test commands. The contract is docs/sweep-contract.md."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel import process, untrusted
from treewright.kernel.containment import NO_LIMITS, Limits
from treewright.kernel.errors import TreewrightError
from treewright.kernel.process import ProcessResult
from treewright.llm import keys
from treewright.tree.config import (
    BackendConfig,
    CommandBackend,
    Config,
    LlmIdeas,
    OpenaiBackend,
    SweepConfig,
    TestsConfig,
)
from treewright.tree.records import layout
from treewright.tree.repository.private_git import private_repository

RESULTS_CSV = "TREEWRIGHT_RESULTS_CSV"
CONFIG_START = "TREEWRIGHT_SWEEP_CONFIG_START"
CONFIG_LIMIT = "TREEWRIGHT_SWEEP_CONFIG_LIMIT"
_CONTRACT = frozenset({RESULTS_CSV, CONFIG_START, CONFIG_LIMIT})
_GIT_LOCATION = frozenset(
    f"GIT_{name}"
    for name in (
        "DIR", "WORK_TREE", "INDEX_FILE", "COMMON_DIR", "PREFIX", "NAMESPACE",
        "OBJECT_DIRECTORY", "ALTERNATE_OBJECT_DIRECTORIES",
    )
)  # fmt: skip
"""Set inside a git hook; with them a candidate's git would work on another repository."""
_GIT_CEILINGS = "GIT_CEILING_DIRECTORIES"
PROVIDER_KEYS = frozenset({
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
    "AZURE_OPENAI_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY", "GOOGLE_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY", "OPENAI_API_KEY",
    "OPENROUTER_API_KEY", "XAI_API_KEY",
})  # fmt: skip
"""What command-line agents find their key in."""
_AWS_KEYS = frozenset({"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_USES_AWS = "CLAUDE_CODE_USE_BEDROCK"


class SweepError(TreewrightError):
    """A sweep that the search itself depends on, not a candidate's, failed."""


@dataclass(frozen=True, slots=True)
class ConfigRange:
    """Which configs to run: `start <= config_id < stop`; no stop means all there are."""

    start: int = 0
    stop: int | None = None

    def __contains__(self, config_id: int) -> bool:
        return config_id >= self.start and (self.stop is None or config_id < self.stop)


@dataclass(frozen=True, slots=True)
class CommandContext:
    """What every command in a worktree needs besides its own settings."""

    worktree: Path
    log_dir: Path
    seed: int
    owner: str = ""
    cancel: threading.Event | None = None
    hidden_variables: frozenset[str] = frozenset()
    limits: Limits = NO_LIMITS

    def environment(self, **extra: str) -> dict[str, str]:
        """Ours, less keys and whatever a surrounding treewright or git had set. A worktree
        without its `.git` is not to be taken for the repository that it lies in."""
        dropped = self.hidden_variables | _CONTRACT | _GIT_LOCATION
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        ceilings = [str(self.worktree.absolute().parent), kept.get(_GIT_CEILINGS, "")]
        kept[_GIT_CEILINGS] = os.pathsep.join(filter(None, ceilings))
        return {**kept, "TREEWRIGHT_SEED": str(self.seed), **extra}


def run_sweep(
    config: SweepConfig, context: CommandContext, configs: ConfigRange, name: str = "sweep"
) -> tuple[ProcessResult, Path]:
    """Runs the sweep; returns how it ended and where its CSV should be."""
    if config.results_csv is not None:
        results = context.worktree / config.results_csv
    else:
        results = context.log_dir / layout.results(name)
    results.parent.mkdir(parents=True, exist_ok=True)
    untrusted.remove_tree(results)
    variables = {RESULTS_CSV: str(results), CONFIG_START: str(configs.start)}
    if configs.stop is not None:
        variables[CONFIG_LIMIT] = str(configs.stop)
    done = _run(config.command, config.timeout_seconds, context, f"{name}.log", variables)
    return done, results


def read_results_file(config: SweepConfig, results: Path, context: CommandContext) -> bytes | None:
    """The CSV that a sweep left; None if it left none. NotPlain if that is no plain file."""
    inside = context.log_dir if config.results_csv is None else context.worktree
    try:
        return untrusted.read(results, untrusted.LARGEST_RESULTS, inside)
    except FileNotFoundError:
        return None


def run_tests(config: TestsConfig, context: CommandContext) -> ProcessResult:
    return _run(config.command, config.timeout_seconds, context, layout.TESTS_LOG, {})


def key_variables(config: Config) -> dict[str, bool]:
    """Environment variables that hold the keys of the configuration's endpoints; which of them
    have to be set."""
    endpoints = [b.endpoint for b in _backends(config) if isinstance(b, OpenaiBackend)]
    endpoints += [source.endpoint for source in config.ideas if isinstance(source, LlmIdeas)]
    variables = [keys.variable_for(endpoint) for endpoint in endpoints]
    return {v.name: v.required for v in variables if v is not None}


def secret_variables(config: Config) -> frozenset[str]:
    """Environment variables with API keys, which generated code must not see.

    A command-line agent's key has a well-known name. Keys of AWS are taken away only if
    they are the agent's: a sweep may need them for its data.
    """
    found = frozenset(key_variables(config)) | keys.listed_variables()
    if any(isinstance(backend, CommandBackend) for backend in _backends(config)):
        found |= PROVIDER_KEYS
        if os.environ.get(_USES_AWS):
            found |= _AWS_KEYS
    return found


def _backends(config: Config) -> tuple[BackendConfig, ...]:
    return (config.agents.planner, config.agents.coder, config.agents.reviewer)


def limits(config: Config) -> Limits:
    return Limits(config.limits.memory_mb, config.limits.file_mb)


def _run(
    command: str, timeout: float, context: CommandContext, log: str, variables: dict[str, str]
) -> ProcessResult:
    with private_repository(context.worktree):
        return process.run(
            command,
            cwd=context.worktree,
            env=context.environment(**variables),
            log_path=context.log_dir / log,
            timeout=timeout,
            limits=context.limits,
            cancel=context.cancel,
            owner=context.owner,
        )
