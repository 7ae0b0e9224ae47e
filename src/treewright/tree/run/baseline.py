"""The baseline of a run: the results of the root commit, which every candidate is compared with.

A new run reads them from `baseline_csv`, or sweeps the root with --make-baseline. Before the run is
recorded, the sweep and the tests are tried on the root, and its noise is checked.
"""

from __future__ import annotations

import csv
import logging
import threading
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.kernel.storage import artifacts, atomic, untrusted
from treewright.kernel.storage.artifacts import Artifact
from treewright.kernel.text.printable import format_paths
from treewright.tree.config import Config, DirectoryIdeas
from treewright.tree.deciding import objectives
from treewright.tree.deciding.results import NotOneTable, Results
from treewright.tree.evaluating import simulation
from treewright.tree.evaluating.measuring import one_after_the_other
from treewright.tree.guard.commands import ConfigRange
from treewright.tree.guard.protected_files import match_protected
from treewright.tree.records import layout
from treewright.tree.records.model import UNSET, NoiseCheck, Unset
from treewright.tree.repository.git import Root, git
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.run.noise import NoiseTest
from treewright.tree.run.root_commands import RootCommands

_KEPT_AS = f"{layout.ROOT_BASELINE}.csv"
_CONFIGS_OF_A_DRY_RUN = 12
_TOLERANCE = 0.01
"""The relative difference between two sweeps of the same code that needs no message."""

_log = logging.getLogger("treewright")


@dataclass(frozen=True, slots=True)
class RootBaseline:
    """The source of a new run's baseline.

    Attributes:
        limit: The number of configs that candidates are swept on; None for those of the baseline.
        heldout: The number of held-out configs after the limit.
        make: --make-baseline: sweep the root if the file is missing, unusable or stale.
        protected: The paths that a perturbation of the root must not change.
        preflight: Whether to try the sweep and the tests of the root, and to check its noise.
    """

    repo: Path
    run_dir: Path
    run_id: str
    config: Config
    config_path: Path
    limit: int | None
    heldout: int
    dry_run: bool
    make: bool
    protected: list[str]
    preflight: bool = True

    def obtain(
        self, commit: Root, owner: str, cancel: threading.Event | None
    ) -> tuple[Artifact, str | None, NoiseCheck | Unset]:
        """Return the baseline as an artifact, the reason to doubt it, and the check of the noise.

        The reason says why the baseline may belong to another commit; None if there is no doubt.

        Raises:
            UsageError: There is no baseline, or it cannot be used.
            TreewrightError: The root cannot be swept or fails its tests.
        """
        source = self.repo / self.config.baseline_csv
        stale = explain_staleness(self.repo, commit, self.config, self.config_path)
        if self.dry_run and not source.is_file():
            return self._simulate(), None, UNSET
        trees = Worktrees(self.repo, self.run_dir, self.run_id)
        root = RootCommands(self.config, trees, commit.commit, owner, cancel)
        swept = self.make and (stale is not None or not self._is_usable(source))
        if swept:
            self._sweep_root(root, source)
            stale = None
        elif not source.is_file():
            raise UsageError(
                f"no baseline CSV at {source}; run with --make-baseline to sweep the root "
                "commit, or set baseline_csv"
            )
        data = self._read(source)
        try:
            check_baseline(data, self.config, self.limit, source)
        except MissingMetric as problem:
            raise MissingMetric(
                f"{problem}. If the sweep writes it by now, --make-baseline measures the root again"
            ) from None
        except UnusableRows as problem:
            raise UnusableRows(f"{problem}; --make-baseline measures the root again") from None
        noise: NoiseCheck | Unset = UNSET
        is_exact = any(metric.deterministic for metric in self.config.metrics)
        if self.dry_run:
            pass
        elif is_exact:
            data, noise = self._check_exact(root, data, source, swept=swept)
            if self.preflight:
                root.try_tests()
        elif self.preflight and swept:
            root.try_tests()
        elif self.preflight:
            self._try_sweep(root, data, stale)
        if not self.dry_run and self.preflight and not self.config.primary.deterministic:
            noise = self._check_noise(root, data)
        kept = artifacts.keep(data, self.run_dir, _KEPT_AS, self.config.baseline_csv)
        if stale is not None:
            _log.warning("%s; --make-baseline sweeps this commit instead", stale)
        return kept, stale, noise

    def _is_usable(self, source: Path) -> bool:
        """Return whether the file has sound rows. A new sweep repairs no other problem."""
        if not source.is_file():
            return False
        try:
            read_sound_rows(self._read(source), self.config, self.limit, source)
        except UnusableRows:
            return False
        return True

    def _try_sweep(self, root: RootCommands, baseline: bytes, stale: str | None) -> None:
        """Run the tests of the root, sweep one config, and compare it with the baseline.

        A sweep that does not work would fail every candidate, and a baseline of another commit
        would judge every candidate wrongly.

        Raises:
            UsageError: The baseline may be stale, and the sweep gives another number.
        """
        recorded = objectives.read(baseline, self.config.metrics)
        first = min(recorded.sound_ids)
        found = root.try_sweep(first, with_tests=True)
        metric = self.config.primary
        before, now = recorded.values[metric.name][first], found.values[metric.name][first]
        if metric.repeats is None and abs(now - before) > _TOLERANCE * abs(before):
            if stale is not None:
                raise UsageError(
                    f"{stale}; it is not the root's: {metric.name} of config {first} is "
                    f"{before:.6g} there and {now:.6g} in a sweep of the root commit; run with "
                    "--make-baseline to measure it again (and set repeats = 3 for it if it depends "
                    "on what else the machine does)"
                )
            _log.warning(
                "%s of config %d was %.6g in %s and is %.6g now, of the same code: such a "
                "difference can pass for a gain; set repeats = 3 for it if it depends on what "
                "else the machine does",
                metric.name, first, before, self.config.baseline_csv, now,
            )  # fmt: skip

    def _simulate(self) -> Artifact:
        count = self.limit or _CONFIGS_OF_A_DRY_RUN
        text = simulation.baseline_csv(range(count), self.config.metrics)
        return artifacts.keep(text.encode(), self.run_dir, _KEPT_AS, "invented for a dry run")

    def _read(self, source: Path) -> bytes:
        """Return the bytes of the user's baseline file, which may be a link."""
        try:
            return untrusted.read(source.resolve(), untrusted.LARGEST_RESULTS)
        except OSError as error:
            raise UsageError(f"{source}: not usable as a baseline: {error}") from None

    def _sweep_root(self, root: RootCommands, target: Path) -> None:
        """Sweep the root as often as a candidate is swept, and write the results if sound."""
        _log.info("sweeping the root commit for %s", self.config.baseline_csv)
        stop = None if self.limit is None else self.limit + self.heldout
        try:
            data = one_after_the_other(
                lambda number: root.sweep(ConfigRange(0, stop), number), self.config.repeats
            )
        except NotOneTable as problem:
            raise TreewrightError(f"the baseline sweep: {problem}") from None
        try:
            check_baseline(data, self.config, self.limit, Path("the baseline sweep"))
        except UsageError as problem:
            raise UsageError(f"{problem}{root.last_log_lines()}") from None
        atomic.make_directory(target.parent)
        atomic.write_bytes(target, data)
        _log.info("wrote %s; commit it, so that later runs can use it", target)

    def _check_exact(
        self, root: RootCommands, baseline: bytes, source: Path, *, swept: bool
    ) -> tuple[bytes, NoiseCheck]:
        """Check that metrics with `deterministic = true` do not depend on random numbers.

        Returns the baseline and the check. If the root now gives other results than the baseline,
        --make-baseline replaces it.

        Raises:
            UsageError: A metric differs, or the baseline is not the root's.
        """
        configs = ConfigRange(0, self.limit)
        first = baseline if swept else root.sweep(configs)
        noise = self._noise_test(root).check_exact(first)
        found = None if swept else self._difference(baseline, first)
        if found is None:
            return baseline, noise
        if not self.make:
            raise UsageError(
                f"{source}: not the root's results: {found[0]} is {found[1]} there and in a sweep "
                "of the root commit; run with --make-baseline to measure it again"
            )
        self._sweep_root(root, source)
        return self._read(source), noise

    def _check_noise(self, root: RootCommands, baseline: bytes) -> NoiseCheck:
        """Check that the comparison of the configuration shows the noise of the root."""
        test = self._noise_test(root)
        primary = self.config.primary
        if primary.seeds is not None:
            return test.check_configs(baseline)
        first = min(objectives.read(baseline, self.config.metrics).sound_ids)
        if primary.repeats is not None:
            return test.check_repeats(baseline, first)
        return test.check_one_config(baseline, first)

    def _noise_test(self, root: RootCommands) -> NoiseTest:
        configs = ConfigRange(0, self.limit)
        return NoiseTest(root, self.config, self.config_path, configs, self.protected)

    def _difference(self, first: bytes, second: bytes) -> tuple[str, str] | None:
        wanted = ConfigRange(0, self.limit).__contains__
        metrics = self.config.metrics
        before, after = (objectives.read(data, metrics, wanted) for data in (first, second))
        return objectives.difference(before, after, metrics)


def explain_staleness(repo: Path, root: Root, config: Config, config_path: Path) -> str | None:
    """Return why a baseline may belong to another commit than the root; None if it does not.

    A change of code since the baseline was committed is such a reason. Prose, idea directories, the
    configuration and the baseline itself do not count as code.
    """
    inside = (repo / config.baseline_csv).resolve().is_relative_to(repo.resolve())
    asked = ("rev-list", "--max-count=1", root.commit, "--", config.baseline_csv)
    measured_at = git(repo, *asked).strip() if inside else ""
    if not measured_at:
        return _older_than(root, repo, config)
    if measured_at == root.commit:
        return None
    harmless = [config.baseline_csv, "*.md", ".gitignore"]
    harmless += [source.path for source in config.ideas if isinstance(source, DirectoryIdeas)]
    if config_path.is_relative_to(repo):
        harmless.append(config_path.relative_to(repo).as_posix())
    listed = git(repo, "diff", "--name-only", "--no-renames", "-z", measured_at, root.commit).split(
        "\0"
    )
    changed = [path for path in listed if path and not match_protected([path], harmless)]
    if not changed:
        return None
    return (
        f"{config.baseline_csv} is of commit {measured_at[:12]} and {format_paths(changed)} "
        "changed since: gains may be measured against other code"
    )


def _older_than(root: Root, repo: Path, config: Config) -> str | None:
    """Return why a baseline that is not committed may be stale, by its time; None if not."""
    path = repo / config.baseline_csv
    if not path.is_file() or path.stat().st_mtime >= root.time:
        return None
    return f"{config.baseline_csv} is not committed and older than the root commit"


class UnusableRows(UsageError):
    """Rows of a baseline are missing or not usable; a new sweep of the root can repair that."""


class MissingMetric(UnusableRows):
    """The baseline has no column for a metric; often its name is spelled differently there."""


def read_sound_rows(data: bytes, config: Config, limit: int | None, source: Path) -> Results:
    """Return the results of a baseline.

    Raises:
        UnusableRows: A row is missing or not usable. An incomplete baseline would make every
            candidate look better or worse.
    """
    results = objectives.read(data, config.metrics, ConfigRange(0, limit).__contains__)
    if limit is not None:
        missing = [i for i in range(limit) if i not in results.sound_ids]
        if missing and not results.problems.examples:
            raise UnusableRows(
                f"{source}: config_id {missing[0]} is missing; the baseline must have all "
                f"config_id < {limit}. Re-run the sweep at the root, or lower --sweep-config-limit"
            )
    if "missing_column" in results.problems.counts:
        _check_columns(data, config, source)
    if results.problems.examples or not results.sound_ids:
        problem = (results.problems.examples or ["it has no usable row"])[0]
        raise UnusableRows(f"{source}: not usable as a baseline: {problem}")
    return results


def _check_columns(data: bytes, config: Config, source: Path) -> None:
    """Raise MissingMetric, with the columns that exist, if a metric has no column."""
    line = data.partition(b"\n")[0].decode("utf-8-sig", "replace")
    header = [name.strip() for name in next(csv.reader([line]), [])]
    missing = [metric.name for metric in config.metrics if metric.name not in header]
    if missing and {"config_id", "status"} <= set(header):
        names = ", ".join(f"`{name}`" for name in missing)
        others = [name for name in header if name not in ("config_id", "status")]
        raise MissingMetric(
            f"{source}: there is no column {names}, as a metric of the configuration is called "
            f"(`name` under [[metrics]]); its columns are {', '.join(others) or 'none'}"
        )


def check_baseline(data: bytes, config: Config, limit: int | None, source: Path) -> None:
    """Raise UsageError unless the rows are sound and a search can decide by them."""
    results = read_sound_rows(data, config, limit, source)
    broken = objectives.violation(results, config.metrics)
    if broken is not None:
        raise UsageError(f"{source}: the root itself breaks a constraint: {broken}")
    never = objectives.why_undecidable(config, len(results.sound_ids))
    never = never or objectives.why_unbeatable(config, results)
    if never is not None:
        raise UsageError(f"{source}: {never}")
