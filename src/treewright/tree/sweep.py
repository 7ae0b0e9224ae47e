"""Running a repository's sweep and test commands. The contract is docs/sweep-contract.md."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel import process
from treewright.kernel.containment import NO_LIMITS, Limits
from treewright.kernel.errors import TreewrightError
from treewright.kernel.process import ProcessResult
from treewright.tree.config import (
    AgentsConfig,
    Config,
    LlmIdeas,
    OpenaiBackend,
    SweepConfig,
    TestsConfig,
)

RESULTS_CSV = "TREEWRIGHT_RESULTS_CSV"
CONFIG_START = "TREEWRIGHT_SWEEP_CONFIG_START"
CONFIG_LIMIT = "TREEWRIGHT_SWEEP_CONFIG_LIMIT"
_CONTRACT = frozenset({RESULTS_CSV, CONFIG_START, CONFIG_LIMIT})


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
        """Ours, less keys and whatever a surrounding treewright had set."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in self.hidden_variables and name not in _CONTRACT
        }
        return {**kept, "TREEWRIGHT_SEED": str(self.seed), **extra}


def run_sweep(
    config: SweepConfig, context: CommandContext, configs: ConfigRange, name: str = "sweep"
) -> tuple[ProcessResult, Path]:
    """Runs the sweep; returns how it ended and where its CSV should be."""
    if config.results_csv is not None:
        results = context.worktree / config.results_csv
    else:
        results = context.log_dir / f"{name}_results.csv"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    variables = {RESULTS_CSV: str(results), CONFIG_START: str(configs.start)}
    if configs.stop is not None:
        variables[CONFIG_LIMIT] = str(configs.stop)
    done = _run(config.command, config.timeout_seconds, context, f"{name}.log", variables)
    return done, results


def run_tests(config: TestsConfig, context: CommandContext) -> ProcessResult:
    return _run(config.command, config.timeout_seconds, context, "tests.log", {})


def secret_variables(config: Config) -> frozenset[str]:
    """Names of environment variables that hold API keys; generated code must not see them."""
    agents: AgentsConfig = config.agents
    endpoints = [
        backend.endpoint
        for backend in (agents.planner, agents.coder, agents.reviewer)
        if isinstance(backend, OpenaiBackend)
    ] + [source.endpoint for source in config.ideas if isinstance(source, LlmIdeas)]
    return frozenset(e.api_key_env for e in endpoints if e.api_key_env)


def limits(config: Config) -> Limits:
    return Limits(config.limits.memory_mb, config.limits.file_mb)


def _run(
    command: str, timeout: float, context: CommandContext, log: str, variables: dict[str, str]
) -> ProcessResult:
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
