"""Creation of a run: its settings, and the checks that must pass before it is recorded.

Beam search has a barrier and its own flags. Every other policy of `treewright.search.policies`
chooses one evaluation at a time; its name, settings and summary come from that package.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from treewright.kernel.clock import timestamp
from treewright.kernel.errors import UsageError
from treewright.kernel.storage.run_directory import RunEnvironment
from treewright.llm.endpoint import require_no_password
from treewright.search import policies
from treewright.tree import config as configuration
from treewright.tree.config import Config, DirectoryIdeas
from treewright.tree.deciding import objectives, rounds
from treewright.tree.deciding.caps import Caps, merged
from treewright.tree.deciding.results import Results
from treewright.tree.guard import isolation
from treewright.tree.records import layout
from treewright.tree.records.model import (
    UNSET,
    DedupeScope,
    Manifest,
    Node,
    NodeArtifacts,
    Order,
    PolicyRecord,
)
from treewright.tree.repository import formatting
from treewright.tree.repository.git import Root, require_clean
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.run.baseline import RootBaseline

ROOT_NODE = "n0000"
BEAM = policies.Beam.name
_FLAGS = {"options": "--policy-option"}
_OFF = {"dry-run": "no --dry-run"}
_ONLY_IF_GIVEN = ("patience", "elites", "caps")
_ALWAYS_PROTECTED = (".gitattributes", "*/.gitattributes")


@dataclass(frozen=True, slots=True)
class Shape:
    """The flags that define a run. None stands for the default, or for the recorded value."""

    ideas_per_node: int | None = None
    beam_width: int | None = None
    max_depth: int | None = None
    sweep_config_limit: int | None = None
    max_total_idea_evals: int | None = None
    stop_on_empty_frontier: bool | None = None
    dedupe_scope: DedupeScope | None = None
    confirm_configs: int | None = None
    dry_run: bool | None = None
    patience: int | None = None
    elites: int | None = None
    caps: Caps | None = None

    def with_seeds(self, config: Config) -> Shape:
        """Return the shape with the configuration's `seeds` where no configs were given."""
        seeds, heldout = config.primary.seeds, config.primary.heldout_seeds
        if seeds is None:
            return self
        limit = self.sweep_config_limit
        confirm = self.confirm_configs
        return replace(
            self,
            sweep_config_limit=seeds if limit is None else limit,
            confirm_configs=2 * seeds
            if confirm is None and heldout is None
            else heldout
            if confirm is None
            else confirm,
        )

    def check_against(self, manifest: Manifest) -> None:
        """Raise UsageError if a flag differs from the recorded value of a run."""
        for field in fields(self):
            given, recorded = getattr(self, field.name), rounds.setting(manifest, field.name)
            if isinstance(given, dict):
                given = merged(recorded, given)
            if given is not None and given != recorded:
                name, run = field.name.replace("_", "-"), f"run {manifest.tree_run_id}"
                if isinstance(given, bool):
                    words = {True: f"--{name}", False: _OFF.get(name, f"--no-{name}")}
                    difference = f"{words[given]} is given here but {words[recorded]} in {run}"
                elif isinstance(given, dict):
                    difference = f"other caps are given here than {run} has"
                else:
                    difference = f"--{name} is {given} here but {recorded} in {run}"
                advice = "leave the flag out to continue the run, or start a new one"
                if field.name in rounds.CHANGEABLE:
                    advice = f"give --extend to change it from here on, {advice}"
                raise UsageError(f"{difference}; {advice}")


DEFAULT_SHAPE = Shape(
    ideas_per_node=5,
    beam_width=1,
    max_depth=3,
    stop_on_empty_frontier=True,
    dedupe_scope="node_plus_ancestors",
    confirm_configs=0,
    dry_run=False,
    elites=0,
)


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """The flags that choose a policy. None stands for the default, or for the recorded value."""

    policy: str | None = None
    options: dict[str, Any] | None = None
    order: Order | None = None
    lookahead: int | None = None
    branching: int | None = None

    def begin(self, shape: Shape, workers: int) -> PolicyRecord | None:
        """Return the settings of a new run; None for beam search.

        Raises:
            UsageError: A flag has no effect with this policy, or a needed one is missing.
        """
        name = self.policy or BEAM
        if name == BEAM:
            self._only(BEAM, "policy")
            return None
        made = policies.make(name, self.options)  # first, because there may be no such policy
        for flag in rounds.OF_BEAM_SEARCH:
            if getattr(shape, flag) is not None:
                raise UsageError(f"{_flag(flag)} means nothing with --policy {name}")
        if shape.max_total_idea_evals is None:
            raise UsageError(
                f"--policy {name} needs --max-total-idea-evals: it goes on as long as there are "
                "ideas"
            )
        order = self.order or "fixed"
        if order == "live" and self.lookahead is not None:
            raise UsageError(
                "--lookahead means nothing with --order live: all that is known counts"
            )
        if self.lookahead is not None and self.lookahead < workers:
            raise UsageError(
                f"--lookahead {self.lookahead} keeps only so many of {workers} workers busy; give "
                f"{workers} or more"
            )
        return PolicyRecord(
            policy=name,
            options=policies.describe(made),
            order=order,
            lookahead=self.lookahead or workers,
            branching=self.branching or made.branching,
        )

    def check_against(self, manifest: Manifest) -> None:
        """Raise UsageError if a flag differs from the recorded settings of a run."""
        policy_record = manifest.policy_record
        if policy_record is None:
            if self.policy not in (None, BEAM):
                raise _differs("policy", self.policy, BEAM, manifest)
            self._only(BEAM, "policy")
            return
        for field in fields(self):
            given, recorded = getattr(self, field.name), getattr(policy_record, field.name)
            if field.name == "options" and given is not None:
                given = policies.describe(
                    policies.make(policy_record.policy, {**recorded, **given})
                )
            if given is not None and given != recorded:
                raise _differs(field.name, given, recorded, manifest)

    def _only(self, policy: str, *meaningful: str) -> None:
        for field in fields(self):
            if field.name not in meaningful and getattr(self, field.name) is not None:
                raise UsageError(f"{_flag(field.name)} means nothing with --policy {policy}")


def describe_policy(manifest: Manifest) -> str:
    """Return the policy of a run with its settings, in a few words."""
    policy_record = manifest.policy_record
    if policy_record is None:
        return BEAM
    known = policies.known().get(policy_record.policy)
    plain = policies.describe(known()) if known is not None else {}
    words = [
        f"{name} {value}"
        for name, value in policy_record.options.items()
        if plain.get(name) != value
    ]
    order = (
        "live order" if policy_record.order == "live" else f"lookahead {policy_record.lookahead}"
    )
    return f"{policy_record.policy} ({', '.join([*words, order])})"


def _flag(name: str) -> str:
    return _FLAGS.get(name) or "--" + name.replace("_", "-")


def _differs(name: str, given: object, recorded: object, manifest: Manifest) -> UsageError:
    return UsageError(
        f"{_flag(name)} is {given} here but {recorded} in run {manifest.tree_run_id}; leave the "
        "flag out to continue the run, or start a new one"
    )


@dataclass(frozen=True, slots=True)
class NewRun:
    """Everything that a run is created from. `policy_record` is None for beam search."""

    repo: Path
    run_dir: Path
    run_id: str
    config: Config
    config_path: Path
    shape: Shape
    make_baseline: bool = False
    preflight: bool = True
    policy_record: PolicyRecord | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", self.shape.with_seeds(self.config))

    def check(self) -> Root:
        """Check the configuration before any file is written; return the root commit of the run."""
        self._check_filled_in()
        for endpoint in self.config.endpoints:
            require_no_password(endpoint.base_url)
        why = objectives.why_undecidable(self.config, self.shape.sweep_config_limit or 2)
        if why is not None:
            raise UsageError(f"{self.config_path}: {why}")
        if not self.shape.dry_run:
            isolation.check(self.config, self.repo)
        require_clean(self.repo, but_for=self.config.baseline_csv)
        root = Root.of(self.repo)
        if self.shape.confirm_configs and self.shape.sweep_config_limit is None:
            raise UsageError(
                "--confirm-configs needs --sweep-config-limit: the held-out configs are those "
                "from the limit on"
            )
        if not self.shape.dry_run:
            self._check_idea_directories()
        return root

    def _check_idea_directories(self) -> None:
        for source in self.config.ideas:
            if isinstance(source, DirectoryIdeas) and not (self.repo / source.path).is_dir():
                raise UsageError(
                    f"{self.config_path}: there is no directory {source.path} for ideas; make it, "
                    "or check `path` of this idea source"
                )

    def _check_filled_in(self) -> None:
        """Raise UsageError for values that `treewright init` left for the user to fill in.

        A dry run does not need them.
        """
        missing = configuration.unfilled(self.config)
        if missing and not self.shape.dry_run:
            raise UsageError(
                f"{self.config_path}: `{missing[0]}` still says {configuration.FILL_IN}; "
                "replace it by what this repository needs"
            )

    def build(self, root: Root, owner: str, cancel: threading.Event | None = None) -> Manifest:
        """Return the manifest of a run that has only its root; `owner` marks its processes."""
        source = RootBaseline(
            repo=self.repo,
            run_dir=self.run_dir,
            run_id=self.run_id,
            config=self.config,
            config_path=self.config_path,
            limit=self.shape.sweep_config_limit,
            heldout=self.shape.confirm_configs or 0,
            dry_run=bool(self.shape.dry_run),
            make=self.make_baseline,
            protected=self._protected_paths(),
            preflight=self.preflight,
        )
        baseline, stale, noise = source.obtain(root, owner, cancel)
        merged = {
            field.name: getattr(DEFAULT_SHAPE, field.name)
            if getattr(self.shape, field.name) is None
            else getattr(self.shape, field.name)
            for field in fields(Shape)
            if field.name not in _ONLY_IF_GIVEN
        }
        trees = Worktrees(self.repo, self.run_dir, self.run_id)
        now = timestamp()
        node = Node(
            node_id=ROOT_NODE,
            parent_node_id=None,
            depth=0,
            commit=root.commit,
            tree=root.tree,
            code=formatting.UNCHANGED,
            ref=None if merged["dry_run"] else trees.node_ref(ROOT_NODE),
            worktree_path=None if merged["dry_run"] else layout.worktree(ROOT_NODE),
            baseline_results_csv_path=baseline.path,
            sweep_config_limit=self.shape.sweep_config_limit,
            idea_chain=[],
            status="frontier",
            created_at=now,
            node_ideas_dir=layout.ideas(ROOT_NODE),
            artifacts=NodeArtifacts(baseline=baseline),
        )
        manifest = Manifest(
            tree_run_id=self.run_id,
            created_at=now,
            seed=self.config.seed,
            root_commit=root.commit,
            root_commit_time=root.time,
            root_baseline_csv_path=baseline.path,
            baseline_doubt=stale,
            noise_check=noise,
            protected_paths=self._protected_paths(),
            agent_config=msgspec.to_builtins(self.config),
            environment=RunEnvironment.here(),
            frontier=[ROOT_NODE],
            nodes={ROOT_NODE: node},
            search=UNSET if self.policy_record is None else self.policy_record,
            **merged,
        )
        for name in _ONLY_IF_GIVEN:
            if getattr(self.shape, name) is not None:
                setattr(manifest, name, getattr(self.shape, name))
        if self.policy_record is None and self.shape.elites is None:
            manifest.elites = DEFAULT_SHAPE.elites or 0
        return manifest

    def _protected_paths(self) -> list[str]:
        """Return the declared paths, and the files that the measurement itself depends on."""
        measuring = (self.repo / self.config.baseline_csv, self.config_path)
        inside = [
            path.relative_to(self.repo).as_posix()
            for path in measuring
            if path.is_relative_to(self.repo)
        ]
        return sorted({*self.config.protected_paths, *inside, *_ALWAYS_PROTECTED})


def expected_ids(manifest: Manifest, config: Config, root_baseline: bytes | None) -> list[int]:
    """Return the configs that every candidate must have: below the limit, or those of the root."""
    if manifest.sweep_config_limit is not None:
        return list(range(manifest.sweep_config_limit))
    results: Results = objectives.read(root_baseline, config.metrics)
    return sorted(results.sound_ids)


def heldout_ids(manifest: Manifest) -> Sequence[int]:
    """Return the configs that take no part in the selection."""
    limit = manifest.sweep_config_limit or 0
    return range(limit, limit + manifest.confirm_configs)
