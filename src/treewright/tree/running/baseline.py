"""The results of the root, against which a whole run is measured: found, made, or stale."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel import artifacts, atomic, untrusted
from treewright.kernel.artifacts import Artifact
from treewright.kernel.errors import TreewrightError, UsageError
from treewright.tree.config import Config, DirectoryIdeas
from treewright.tree.deciding.results import parse_results
from treewright.tree.evaluating import simulation, sweep
from treewright.tree.evaluating.preflight import Preflight
from treewright.tree.evaluating.sweep import CommandContext, ConfigRange
from treewright.tree.evaluating.wording import explain_end, some_of
from treewright.tree.records import layout
from treewright.tree.repository.git import git
from treewright.tree.repository.worktrees import Worktrees, protected_changes

_KEPT_AS = f"{layout.ROOT_BASELINE}.csv"
_CONFIGS_OF_A_DRY_RUN = 12

_log = logging.getLogger("treewright")


@dataclass(frozen=True, slots=True)
class RootBaseline:
    """Where a new run gets its baseline from. `make` is --make-baseline, `preflight` whether
    the sweep is tried on the root where it need not be swept."""

    repo: Path
    run_dir: Path
    run_id: str
    config: Config
    config_path: Path
    limit: int | None
    heldout: int
    dry_run: bool
    make: bool
    preflight: bool = True

    def obtain(
        self, root_commit: str, owner: str, cancel: threading.Event | None
    ) -> tuple[Artifact, str | None]:
        """The baseline, kept as an artifact, and why it may not be this commit's, if so."""
        source = self.repo / self.config.baseline_csv
        stale = stale_because(self.repo, self.config, self.config_path)
        if self.dry_run and not source.is_file():
            return self._invented(), None
        swept = self.make and (stale is not None or not source.is_file())
        if swept:
            self._sweep_root(root_commit, source, owner, cancel)
            stale = None
        elif not source.is_file():
            raise UsageError(
                f"no baseline CSV at {source}; run with --make-baseline to sweep the root "
                "commit, or set baseline_csv"
            )
        data = self._read(source)
        check_baseline(data, self.config, self.limit, source)
        kept = artifacts.keep(data, self.run_dir, _KEPT_AS, self.config.baseline_csv)
        if not self.dry_run and not swept and self.preflight:
            self._try_sweep(root_commit, data, owner, cancel)
        if stale is not None:
            _log.warning("%s; --make-baseline sweeps this commit instead", stale)
        return kept, stale

    def _try_sweep(
        self, root_commit: str, baseline: bytes, owner: str, cancel: threading.Event | None
    ) -> None:
        """A sweep that does not work would fail every candidate; better to say it before."""
        names = [metric.name for metric in self.config.metrics]
        first = min(parse_results(baseline, names).sound_ids)
        trees = Worktrees(self.repo, self.run_dir, self.run_id)
        Preflight(self.config, trees, owner, cancel).check(root_commit, first)

    def _invented(self) -> Artifact:
        count = self.limit or _CONFIGS_OF_A_DRY_RUN
        text = simulation.baseline_csv(range(count), self.config.metrics)
        return artifacts.keep(text.encode(), self.run_dir, _KEPT_AS, "invented for a dry run")

    def _read(self, source: Path) -> bytes:
        """The user's own file: a link to it is as good as the file."""
        try:
            return untrusted.read(source.resolve(), untrusted.LARGEST_RESULTS)
        except OSError as error:
            raise UsageError(f"{source}: not usable as a baseline: {error}") from None

    def _sweep_root(
        self, root_commit: str, target: Path, owner: str, cancel: threading.Event | None
    ) -> None:
        """Sweeps the root commit in a worktree of its own; writes only sound results."""
        _log.info("sweeping the root commit for %s", self.config.baseline_csv)
        trees = Worktrees(self.repo, self.run_dir, self.run_id)
        log_dir = self.run_dir / layout.sweep_directory(layout.ROOT_BASELINE)
        log_dir.mkdir(parents=True, exist_ok=True)
        try:
            worktree = trees.add_candidate(layout.ROOT_BASELINE, root_commit)
            context = CommandContext(
                worktree,
                log_dir,
                self.config.seed,
                owner,
                cancel,
                hidden_variables=sweep.secret_variables(self.config),
                limits=sweep.limits(self.config),
            )
            stop = None if self.limit is None else self.limit + self.heldout
            done, results = sweep.run_sweep(self.config.sweep, context, ConfigRange(0, stop))
            if done.cancelled:
                raise KeyboardInterrupt
            log = log_dir / layout.SWEEP_LOG
            if not done.ok:
                raise TreewrightError(explain_end(done, "the baseline sweep", log))
            data = measured_by(self.config, results, context, "the baseline sweep")
            check_baseline(data, self.config, self.limit, Path("the baseline sweep"))
            atomic.make_directory(target.parent)
            atomic.write_bytes(target, data)
            _log.info("wrote %s; commit it, so that later runs can use it", target)
        finally:
            trees.remove_candidate(layout.ROOT_BASELINE)


def stale_because(repo: Path, config: Config, config_path: Path) -> str | None:
    """Why a committed baseline may not be the root's: code has changed since.

    Prose, idea directories, the configuration and the baseline itself do not count.
    """
    measured_at = git(repo, "log", "-1", "--format=%H", "--", config.baseline_csv).strip()
    if not measured_at:
        return _older_than_head(repo, config)
    harmless = [config.baseline_csv, "*.md", ".gitignore"]
    harmless += [source.path for source in config.ideas if isinstance(source, DirectoryIdeas)]
    if config_path.is_relative_to(repo):
        harmless.append(config_path.relative_to(repo).as_posix())
    listed = git(repo, "diff", "--name-only", "--no-renames", "-z", measured_at, "HEAD").split("\0")
    changed = [path for path in listed if path and not protected_changes([path], harmless)]
    if not changed:
        return None
    return (
        f"{config.baseline_csv} is of commit {measured_at[:12]} and {some_of(changed)} changed "
        "since: gains may be measured against other code"
    )


def _older_than_head(repo: Path, config: Config) -> str | None:
    """Of a file that is not committed only its time can be compared."""
    path = repo / config.baseline_csv
    committed = int(git(repo, "show", "-s", "--format=%ct", "HEAD"))
    if not path.is_file() or path.stat().st_mtime >= committed:
        return None
    return f"{config.baseline_csv} is not committed and older than the root commit"


def measured_by(config: Config, results: Path, context: CommandContext, what: str) -> bytes:
    """What a sweep of our own commit wrote; that it wrote nothing usable is an error."""
    try:
        data = sweep.read_results_file(config.sweep, results, context)
    except untrusted.NotPlain as problem:
        raise TreewrightError(f"{what} wrote results that cannot be read: {problem}") from None
    if data is None:
        raise TreewrightError(f"{what} wrote no results to TREEWRIGHT_RESULTS_CSV")
    return data


def check_baseline(data: bytes, config: Config, limit: int | None, source: Path) -> None:
    """A baseline that is itself incomplete would make every candidate look better or worse."""
    results = parse_results(
        data, [m.name for m in config.metrics], ConfigRange(0, limit).__contains__
    )
    if limit is not None:
        missing = [i for i in range(limit) if i not in results.sound_ids]
        if missing and not results.problems.examples:
            raise UsageError(
                f"{source}: config_id {missing[0]} is missing; the baseline must have all "
                f"config_id < {limit}. Re-run the sweep at the root, or lower --sweep-config-limit"
            )
    if results.problems.examples or not results.sound_ids:
        problem = (results.problems.examples or ["it has no usable row"])[0]
        raise UsageError(f"{source}: not usable as a baseline: {problem}")
