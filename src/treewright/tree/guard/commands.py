"""The tests and the sweep of a commit, run so that their results can be trusted.

`run_tests` and `run_sweep` are the only ways to run them. Both give the command a private
repository and the isolation of the configuration, and afterwards check everything that the command
could reach. The contract of a sweep is docs/sweep-contract.md.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from treewright.kernel.procs import process
from treewright.kernel.procs.containment import NO_LIMITS, Limits
from treewright.kernel.procs.process import ProcessResult
from treewright.kernel.storage import untrusted
from treewright.kernel.text.printable import format_paths
from treewright.tree.config import SweepConfig, TestsConfig
from treewright.tree.guard import protected_files, seals, shared_paths
from treewright.tree.guard.baselines import DECIDING_FILE_CHANGED, DecidingFiles
from treewright.tree.guard.isolation import Isolation
from treewright.tree.guard.protected_files import RootVersion
from treewright.tree.guard.seals import Distrusted
from treewright.tree.records import layout
from treewright.tree.records.model import UNREADABLE_RESULTS
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
_CONTRACT = frozenset({RESULTS_CSV, CONFIG_START, CONFIG_LIMIT, CANDIDATE, SEALED, SLOT, SEED})
_GIT_LOCATION = frozenset(
    f"GIT_{name}"
    for name in (
        "DIR", "WORK_TREE", "INDEX_FILE", "COMMON_DIR", "PREFIX", "NAMESPACE",
        "OBJECT_DIRECTORY", "ALTERNATE_OBJECT_DIRECTORIES",
    )
)  # fmt: skip
"""Variables that are set inside a git hook; git in a worktree would use another repository."""
_GIT_CEILINGS = "GIT_CEILING_DIRECTORIES"


@dataclass(frozen=True, slots=True)
class ConfigRange:
    """The configs to run: `start <= config_id < stop`. Without `stop` all configs from `start`."""

    start: int = 0
    stop: int | None = None

    def __contains__(self, config_id: int) -> bool:
        return config_id >= self.start and (self.stop is None or config_id < self.stop)


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The worktree in which commands run, and everything else that they share.

    Args:
        worktree: The checkout of the commit.
        log_dir: The directory for logs and results.
        seed: The value of TREEWRIGHT_SEED; None leaves it unset.
        owner: The mark of this run on its processes.
        cancel: Ends the command when it is set.
        hidden_variables: Environment variables that the commands do not get, such as API keys.
        limits: Limits of memory and file size.
        variables: More environment variables.
        isolation: The isolation of the commands, if the configuration asks for one.
        root: The root commit and its protected paths; needed for a sweep from a root checkout.
        deciding: The deciding files of the run, which commands must not change.
    """

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
    deciding: DecidingFiles | None = None

    def environment(self, **extra: str) -> dict[str, str]:
        """Return the environment of a command.

        Variables of an outer treewright or git are removed, and git looks for a repository in the
        worktree only.
        """
        dropped = self.hidden_variables | _CONTRACT | _GIT_LOCATION
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        ceilings = [str(self.worktree.absolute().parent), kept.get(_GIT_CEILINGS, "")]
        kept[_GIT_CEILINGS] = os.pathsep.join(filter(None, ceilings))
        seed = {} if self.seed is None else {SEED: str(self.seed)}
        return {**kept, **self.variables, **seed, **extra}


@dataclass(frozen=True, slots=True)
class SweepRun:
    """A finished sweep: its process, its log, and its results.

    `results` is None if the sweep failed or wrote no results.
    """

    done: ProcessResult
    log: Path
    results: bytes | None = None


def run_tests(config: TestsConfig, context: CommandContext) -> ProcessResult:
    """Run the test command.

    Raises:
        Distrusted: The tests changed a deciding file, or passed and changed a protected file.
    """
    when = "while the tests ran"
    done = _run(config, context, layout.TESTS_LOG, {})
    _restore_deciding_files(context, done, when)
    if done.ok:
        _require_protected_unchanged(context, when)
    return done


def run_sweep(
    config: SweepConfig, context: CommandContext, configs: ConfigRange, name: str = "sweep"
) -> SweepRun:
    """Run the sweep and read its results.

    Raises:
        Distrusted: The sweep changed a deciding file. Or it passed, but its results are not to be
            believed: it changed a protected file or the root checkout, or the results lack their
            seal or are not a plain file. Also raised, before anything runs, if the results have no
            directory.
    """
    when = "while it was swept"
    if config.results_csv is not None:
        results, inside = context.worktree / config.results_csv, context.worktree
    else:
        results, inside = context.log_dir / layout.results(name), context.log_dir
    _clear_results(results, inside)
    variables = {CONFIG_START: str(configs.start), CANDIDATE: str(context.worktree.absolute())}
    if configs.stop is not None:
        variables[CONFIG_LIMIT] = str(configs.stop)
    key = seals.new_key() if config.sealed else ""
    if config.sealed:
        variables[SEALED] = "1"
    log = f"{name}.log"
    with contextlib.ExitStack() as stack:
        written, writable = results, ()
        if context.isolation is not None and config.results_csv is None:
            outbox = _outbox(context.log_dir / layout.outbox(name), results)
            written = stack.enter_context(outbox)
            writable = (written.parent,)
        variables[RESULTS_CSV] = str(written)
        checkout = stack.enter_context(_root_checkout(config, context))
        before = protected_files.take_snapshot(checkout) if checkout is not None else {}
        done = _run(config, context, log, variables, writable, checkout, key)
        _restore_deciding_files(context, done, when)
        if checkout is not None and context.root is not None and done.ok:
            problem = protected_files.describe_changes(context.root, checkout, before)
            if problem:
                raise Distrusted(PROTECTED_PATH_CHANGED, problem)
    run = SweepRun(done, context.log_dir / log)
    if not done.ok:
        return run
    if config.sealed:
        seals.remove_seal(results, inside, key)
    _require_protected_unchanged(context, when)
    try:
        data = untrusted.read(results, untrusted.LARGEST_RESULTS, inside)
    except FileNotFoundError:
        return run
    except untrusted.NotPlain as problem:
        raise Distrusted(UNREADABLE_RESULTS, f"no results to read: {problem}") from None
    results.unlink()
    return SweepRun(done, run.log, data)


def _restore_deciding_files(context: CommandContext, done: ProcessResult, when: str) -> None:
    """Restore deciding files that a command changed, and raise a Distrusted.

    A command that failed is no exception: the next candidate would be blamed for the change. A
    command that was cancelled gets no verdict.
    """
    if context.deciding is None:
        return
    shared_paths.restore(context.deciding.run_dir)
    changed = context.deciding.restore_changed()
    if changed and not done.cancelled:
        raise Distrusted(
            DECIDING_FILE_CHANGED,
            f"{format_paths(changed)}, by which candidates are judged, changed {when} and was "
            "put back",
        )


def _require_protected_unchanged(context: CommandContext, when: str) -> None:
    """Raise a Distrusted if a command changed protected files."""
    root = context.root
    if root is None or not root.protected:
        return
    changed = protected_files.find_changed(root.repo, context.worktree, root.commit, root.protected)
    if changed:
        raise Distrusted(
            PROTECTED_PATH_CHANGED,
            f"its code changed protected {format_paths(changed)} {when}",
        )


@contextlib.contextmanager
def _root_checkout(config: SweepConfig, context: CommandContext) -> Iterator[Path | None]:
    """Yield a checkout of the root commit, if the sweep runs there and not in the worktree."""
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
    """Yield the path for the results in a directory that an isolated sweep can write to.

    Afterwards the results are moved to their place, and everything else there is removed.
    """
    untrusted.remove_tree(directory)
    directory.mkdir()
    written = directory / results.name
    try:
        yield written
        if os.path.lexists(written):
            written.rename(results)
    finally:
        untrusted.remove_tree(directory)


def _clear_results(results: Path, inside: Path) -> None:
    """Remove old results and make their directory.

    With `results_csv` the commit decides where that is: a link in it must not make the search
    remove a file somewhere else.
    """
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


def _run(
    config: SweepConfig | TestsConfig,
    context: CommandContext,
    log: str,
    variables: dict[str, str],
    writable: tuple[Path, ...] = (),
    directory: Path | None = None,
    key: str = "",
) -> ProcessResult:
    """Run a command in the worktree, or in `directory`, with `key` on its stdin."""
    environment, around = context.environment(**variables), []
    with private_repository(context.worktree):
        if context.isolation is not None:
            environment = context.isolation.environment(environment, config)
            around = context.isolation.around(
                context.worktree, config, writable=writable, directory=directory
            )
        done = process.run(
            config.command,
            cwd=directory or context.worktree,
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
