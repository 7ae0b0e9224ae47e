"""Starting a run: what it is made of, and the checks that must pass before it exists."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import msgspec

from treewright.kernel import artifacts, atomic
from treewright.kernel.artifacts import Artifact
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import TreewrightError, UsageError
from treewright.kernel.rundir import RunEnvironment
from treewright.tree import config as configuration
from treewright.tree import simulation, sweep, worktrees
from treewright.tree.config import Config
from treewright.tree.git import git, head_commit, require_clean
from treewright.tree.model import DedupeScope, Manifest, Node, NodeArtifacts
from treewright.tree.results import Results, read_results
from treewright.tree.sweep import CommandContext, ConfigRange
from treewright.tree.worktrees import Worktrees

ROOT_NODE = "n0000"
ROOT_BASELINE = "root_baseline.csv"
_ALWAYS_PROTECTED = (".gitattributes", "*/.gitattributes")


@dataclass(frozen=True, slots=True)
class Shape:
    """The flags that define a run. None is "not given": the default, or what the run has."""

    ideas_per_node: int | None = None
    beam_width: int | None = None
    max_depth: int | None = None
    sweep_config_limit: int | None = None
    max_total_idea_evals: int | None = None
    stop_on_empty_frontier: bool | None = None
    dedupe_scope: DedupeScope | None = None
    confirm_configs: int | None = None
    dry_run: bool | None = None

    def check_against(self, manifest: Manifest) -> None:
        """On resume the manifest's values hold; another value given is an error."""
        for field in fields(self):
            given, recorded = getattr(self, field.name), getattr(manifest, field.name)
            if given is not None and given != recorded:
                flag = "--" + field.name.replace("_", "-")
                raise UsageError(
                    f"{flag} is {given} here but {recorded} in run {manifest.tree_run_id}; "
                    "leave the flag out to continue the run, or start a new one"
                )


DEFAULT_SHAPE = Shape(
    ideas_per_node=5,
    beam_width=1,
    max_depth=3,
    stop_on_empty_frontier=True,
    dedupe_scope="node_plus_ancestors",
    confirm_configs=0,
    dry_run=False,
)


@dataclass(frozen=True, slots=True)
class NewRun:
    """Everything a run is started from."""

    repo: Path
    run_dir: Path
    run_id: str
    config: Config
    config_path: Path
    shape: Shape
    make_baseline: bool = False

    def check(self) -> None:
        """What can be said before anything is written."""
        self._check_filled_in()
        require_clean(self.repo)
        head_commit(self.repo)
        if self.shape.confirm_configs and self.shape.sweep_config_limit is None:
            raise UsageError(
                "--confirm-configs needs --sweep-config-limit: the held-out configs are those "
                "from the limit on"
            )

    def _check_filled_in(self) -> None:
        """`treewright init` leaves what only the user knows; a dry run can do without."""
        missing = configuration.unfilled(self.config)
        if missing and not self.shape.dry_run:
            raise UsageError(
                f"{self.config_path}: `{missing[0]}` still says {configuration.FILL_IN}; "
                "replace it by what this repository needs"
            )

    def build(self, owner: str, cancel: threading.Event | None = None) -> Manifest:
        """Makes the manifest of a run that has only its root. `owner` marks its processes."""
        root = worktrees.resolve(self.repo, head_commit(self.repo))
        baseline = self._baseline(root.commit, owner, cancel)
        merged = {
            field.name: getattr(DEFAULT_SHAPE, field.name)
            if getattr(self.shape, field.name) is None
            else getattr(self.shape, field.name)
            for field in fields(Shape)
        }
        trees = Worktrees(self.repo, self.run_dir, self.run_id)
        now = timestamp()
        node = Node(
            node_id=ROOT_NODE,
            parent_node_id=None,
            depth=0,
            commit=root.commit,
            tree=root.tree,
            ref=None if merged["dry_run"] else trees.node_ref(ROOT_NODE),
            worktree_path=None if merged["dry_run"] else f"wt/{ROOT_NODE}",
            baseline_results_csv_path=baseline.path,
            sweep_config_limit=self.shape.sweep_config_limit,
            idea_chain=[],
            status="frontier",
            created_at=now,
            node_ideas_dir=f"node_ideas/{ROOT_NODE}",
            artifacts=NodeArtifacts(baseline=baseline),
        )
        return Manifest(
            tree_run_id=self.run_id,
            created_at=now,
            seed=self.config.seed,
            root_commit=root.commit,
            root_commit_time=int(git(self.repo, "show", "-s", "--format=%ct", root.commit)),
            root_baseline_csv_path=baseline.path,
            protected_paths=self._protected_paths(),
            agent_config=msgspec.to_builtins(self.config),
            environment=RunEnvironment.here(),
            frontier=[ROOT_NODE],
            nodes={ROOT_NODE: node},
            **merged,
        )

    def _protected_paths(self) -> list[str]:
        """The declared ones, and the files whose change would change the measure itself."""
        measuring = (self.repo / self.config.baseline_csv, self.config_path)
        inside = [
            path.relative_to(self.repo).as_posix()
            for path in measuring
            if path.is_relative_to(self.repo)
        ]
        return sorted({*self.config.protected_paths, *inside, *_ALWAYS_PROTECTED})

    def _baseline(self, root_commit: str, owner: str, cancel: threading.Event | None) -> Artifact:
        source = self.repo / self.config.baseline_csv
        if not source.is_file():
            if self.shape.dry_run:
                return self._invented_baseline()
            if not self.make_baseline:
                raise UsageError(
                    f"no baseline CSV at {source}; run with --make-baseline to sweep the root "
                    "commit, or set baseline_csv"
                )
            source = self._sweep_root(root_commit, source, owner, cancel)
        kept = artifacts.keep(source, self.run_dir, ROOT_BASELINE, self.config.baseline_csv)
        check_baseline(self.run_dir / kept.path, self.config, self.shape.sweep_config_limit, source)
        return kept

    def _invented_baseline(self) -> Artifact:
        count = self.shape.sweep_config_limit or 12
        path = self.run_dir / "invented_baseline.csv"
        text = simulation.baseline_csv(range(count), self.config.metrics)
        atomic.write_text(path, text)
        try:
            return artifacts.keep(path, self.run_dir, ROOT_BASELINE, "invented for a dry run")
        finally:
            path.unlink()

    def _sweep_root(
        self, root_commit: str, target: Path, owner: str, cancel: threading.Event | None
    ) -> Path:
        """Runs the sweep at the root commit, in a worktree of its own."""
        trees = Worktrees(self.repo, self.run_dir, self.run_id)
        log_dir = self.run_dir / "eval" / "root_baseline"
        log_dir.mkdir(parents=True, exist_ok=True)
        try:
            worktree = trees.add_candidate("root_baseline", root_commit)
            context = CommandContext(
                worktree,
                log_dir,
                self.config.seed,
                owner,
                cancel,
                hidden_variables=sweep.secret_variables(self.config),
                limits=sweep.limits(self.config),
            )
            confirm = self.shape.confirm_configs or 0
            limit = self.shape.sweep_config_limit
            stop = None if limit is None else limit + confirm
            done, results = sweep.run_sweep(self.config.sweep, context, ConfigRange(0, stop))
            if done.cancelled:
                raise KeyboardInterrupt
            if not done.ok:
                raise TreewrightError(
                    f"{done.explain('the baseline sweep')}; see {log_dir / 'sweep.log'}"
                )
            if not results.is_file():
                raise TreewrightError(
                    f"the baseline sweep wrote no results to TREEWRIGHT_RESULTS_CSV; "
                    f"see {log_dir / 'sweep.log'}"
                )
            atomic.make_directory(target.parent)
            atomic.write_bytes(target, results.read_bytes())
            return target
        finally:
            trees.remove_candidate("root_baseline")


def check_baseline(path: Path, config: Config, limit: int | None, source: Path) -> None:
    """A baseline that is itself incomplete would make every candidate look better or worse."""
    results = read_results(
        path, [m.name for m in config.metrics], ConfigRange(0, limit).__contains__
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


def expected_ids(run_dir: Path, manifest: Manifest, config: Config) -> list[int]:
    """The configs a candidate must have, all of them: below the limit, or the root's."""
    if manifest.sweep_config_limit is not None:
        return list(range(manifest.sweep_config_limit))
    results: Results = read_results(
        run_dir / manifest.root_baseline_csv_path, [m.name for m in config.metrics]
    )
    return sorted(results.sound_ids)


def heldout_ids(manifest: Manifest) -> Sequence[int]:
    """The configs that nobody selects on."""
    limit = manifest.sweep_config_limit or 0
    return range(limit, limit + manifest.confirm_configs)
