"""Running a repository's sweep and test commands. The contract is docs/sweep-contract.md."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from treewright.kernel.errors import TreewrightError
from treewright.kernel.procs import process
from treewright.kernel.procs.containment import NO_LIMITS, Limits
from treewright.kernel.procs.process import ProcessResult
from treewright.kernel.storage import untrusted
from treewright.llm import keys
from treewright.llm.endpoint import password_variable
from treewright.tree.agents.presets import agent_keys
from treewright.tree.config import (
    BackendConfig,
    CommandBackend,
    Config,
    SweepConfig,
    TestsConfig,
)
from treewright.tree.deciding.results import UNREADABLE_RESULTS
from treewright.tree.guard import root_checkout, seals
from treewright.tree.guard.isolation import Isolation
from treewright.tree.guard.root_checkout import RootVersion
from treewright.tree.guard.seals import Distrusted
from treewright.tree.records import layout
from treewright.tree.repository import worktrees
from treewright.tree.repository.private_repository import private_repository

RESULTS_CSV = "TREEWRIGHT_RESULTS_CSV"
CONFIG_START = "TREEWRIGHT_SWEEP_CONFIG_START"
CONFIG_LIMIT = "TREEWRIGHT_SWEEP_CONFIG_LIMIT"
CANDIDATE = "TREEWRIGHT_CANDIDATE"
SEALED = "TREEWRIGHT_SEALED"
SLOT = "TREEWRIGHT_SLOT"
SEED = "TREEWRIGHT_SEED"
PROTECTED_PATH_CHANGED = "protected_path_changed"
_CONTRACT = frozenset({RESULTS_CSV, CONFIG_START, CONFIG_LIMIT, CANDIDATE, SEALED, SLOT})
_GIT_LOCATION = frozenset(
    f"GIT_{name}"
    for name in (
        "DIR", "WORK_TREE", "INDEX_FILE", "COMMON_DIR", "PREFIX", "NAMESPACE",
        "OBJECT_DIRECTORY", "ALTERNATE_OBJECT_DIRECTORIES",
    )
)  # fmt: skip
"""Set inside a git hook; with them a candidate's git would work on another repository."""
_GIT_CEILINGS = "GIT_CEILING_DIRECTORIES"


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
    """What every command in a worktree needs besides its own settings. `root` is what a sweep
    with a checkout of its own runs from. Without a `seed`, TREEWRIGHT_SEED is not set."""

    worktree: Path
    log_dir: Path
    seed: int | None
    owner: str = ""
    cancel: threading.Event | None = None
    hidden_variables: frozenset[str] = frozenset()
    limits: Limits = NO_LIMITS
    variables: Mapping[str, str] = field(default_factory=dict)
    isolation: Isolation | None = None
    root: RootVersion | None = None

    def environment(self, **extra: str) -> dict[str, str]:
        """Ours, less keys and whatever a surrounding treewright or git had set. A worktree
        without its `.git` is not to be taken for the repository that it lies in."""
        dropped = self.hidden_variables | _CONTRACT | _GIT_LOCATION | {SEED}
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        ceilings = [str(self.worktree.absolute().parent), kept.get(_GIT_CEILINGS, "")]
        kept[_GIT_CEILINGS] = os.pathsep.join(filter(None, ceilings))
        seeded = {} if self.seed is None else {SEED: str(self.seed)}
        return {**kept, **self.variables, **seeded, **extra}


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
    trees: worktrees.Worktrees,
    worktree: Path,
    commit: str,
    log_dir: Path,
    owner: str,
    cancel: threading.Event | None,
) -> CommandContext:
    """For a commit that nobody has to judge: the root, to see what its sweep gives."""
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
    """The user's variables of one of the places for evaluations at once, and its number."""
    if slot is None:
        return {}
    own = {name: values[slot] for name, values in config.slots.items() if slot < len(values)}
    return {**own, SLOT: str(slot)}


def run_sweep(
    config: SweepConfig, context: CommandContext, configs: ConfigRange, name: str = "sweep"
) -> tuple[ProcessResult, Path]:
    """Runs the sweep; returns how it ended and where its CSV should be. Distrusted if what ran
    changed the checkout that the sweep had to itself, if the results lack their seal, or if there
    is no place for them."""
    if config.results_csv is not None:
        results = context.worktree / config.results_csv
    else:
        results = context.log_dir / layout.results(name)
    _clear_place(results, _inside(config, context))
    variables = {CONFIG_START: str(configs.start), CANDIDATE: str(context.worktree.absolute())}
    if configs.stop is not None:
        variables[CONFIG_LIMIT] = str(configs.stop)
    key = seals.new_key() if config.sealed else ""
    if config.sealed:
        variables[SEALED] = "1"
    with contextlib.ExitStack() as stack:
        written, writable = results, ()
        if context.isolation is not None and config.results_csv is None:
            outbox = _outbox(context.log_dir / layout.outbox(name), results)
            written = stack.enter_context(outbox)
            writable = (written.parent,)
        variables[RESULTS_CSV] = str(written)
        own = stack.enter_context(_own_checkout(config, context))
        before = root_checkout.take_snapshot(own) if own is not None else {}
        done = _run(config, context, f"{name}.log", variables, writable, own, key)
        if own is not None and context.root is not None and done.ok:
            problem = root_checkout.describe_changes(context.root, own, before)
            if problem:
                raise Distrusted(PROTECTED_PATH_CHANGED, problem)
    if config.sealed and done.ok:
        seals.remove_seal(results, _inside(config, context), key)
    return done, results


@contextlib.contextmanager
def _own_checkout(config: SweepConfig, context: CommandContext) -> Iterator[Path | None]:
    """The files of the root, for a sweep that does not run among those of the candidate."""
    if config.checkout == "candidate":
        yield None
        return
    assert context.root is not None
    directory = context.worktree.with_name(layout.evaluator(context.worktree.name))
    try:
        worktrees.export(context.root.repo, context.root.commit, directory)
        yield directory
    finally:
        untrusted.remove_tree(directory)


@contextlib.contextmanager
def _outbox(directory: Path, results: Path) -> Iterator[Path]:
    """A directory of the run that an isolated sweep can write to; of what it leaves there the
    results are moved to their place, whatever they are, and nothing else is kept."""
    untrusted.remove_tree(directory)
    directory.mkdir()
    written = directory / results.name
    try:
        yield written
        if os.path.lexists(written):
            written.rename(results)
    finally:
        untrusted.remove_tree(directory)


def read_results_file(config: SweepConfig, results: Path, context: CommandContext) -> bytes | None:
    """The CSV that a sweep left; None if it left none. NotPlain if that is no plain file."""
    try:
        return untrusted.read(results, untrusted.LARGEST_RESULTS, _inside(config, context))
    except FileNotFoundError:
        return None


def _clear_place(results: Path, inside: Path) -> None:
    """Nothing has the name of the results, and their directory is there. With `results_csv` that
    is in a commit's hands: a link in it must not make us remove a file somewhere else."""
    try:
        leads_outside = not results.parent.resolve().is_relative_to(inside.resolve())
        if not leads_outside:
            results.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, RuntimeError):
        leads_outside = False
    if leads_outside or not results.parent.is_dir():
        where = "reached through a link that leads outside" if leads_outside else "no directory"
        raise Distrusted(
            UNREADABLE_RESULTS,
            f"no place for results: the directory of {results.name} is {where}; nothing was run",
        )
    untrusted.remove_tree(results)


def _inside(config: SweepConfig, context: CommandContext) -> Path:
    return context.log_dir if config.results_csv is None else context.worktree


def run_tests(config: TestsConfig, context: CommandContext) -> ProcessResult:
    return _run(config, context, layout.TESTS_LOG, {})


def key_variables(config: Config) -> dict[str, bool]:
    """Environment variables that hold the keys of the configuration's endpoints, and passwords
    in their addresses; which of them have to be set."""
    variables = [keys.variable_for(endpoint) for endpoint in config.endpoints]
    passwords = [password_variable(endpoint.base_url) for endpoint in config.endpoints]
    found = {name: True for name in passwords if name is not None}
    return found | {v.name: v.required for v in variables if v is not None}


def secret_variables(config: Config) -> frozenset[str]:
    """Environment variables with API keys, which generated code must not see.

    Keys of AWS are taken away only if they are the agent's: a sweep may need them for its data.
    """
    found = frozenset(key_variables(config)) | keys.listed_variables()
    if any(isinstance(backend, CommandBackend) for backend in _backends(config)):
        found |= agent_keys()
    return found


def _backends(config: Config) -> tuple[BackendConfig, ...]:
    return (config.agents.planner, config.agents.coder, config.agents.reviewer)


def limits(config: Config) -> Limits:
    return Limits(config.limits.memory_mb, config.limits.file_mb)


def _run(
    config: SweepConfig | TestsConfig,
    context: CommandContext,
    log: str,
    variables: dict[str, str],
    writable: tuple[Path, ...] = (),
    own: Path | None = None,
    key: str = "",
) -> ProcessResult:
    """`own` is a directory to run in that is not the worktree, `key` what to read on stdin."""
    environment, around = context.environment(**variables), []
    with private_repository(context.worktree):
        if context.isolation is not None:
            environment = context.isolation.environment(environment, config)
            around = context.isolation.around(
                context.worktree, config, writable=writable, directory=own
            )
        done = process.run(
            config.command,
            cwd=own or context.worktree,
            env=environment,
            log_path=context.log_dir / log,
            stdin=f"{key}\n".encode() if key else b"",
            timeout=config.timeout_seconds,
            limits=context.limits,
            around=around,
            cancel=context.cancel,
            owner=context.owner,
        )
        if context.isolation is not None:
            context.isolation.leave(context.worktree)
        return done
