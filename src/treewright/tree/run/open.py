"""Open a run: find or create it, take its lease, repair it, and close it in order."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from treewright.kernel.errors import MissingExtra, TreewrightError, UsageError
from treewright.kernel.procs.cancellation import Fence
from treewright.kernel.storage import journal, run_directory, untrusted
from treewright.kernel.storage.lease import DEFAULT_STALE_SECONDS, Lease
from treewright.tree import config as configuration
from treewright.tree.agents.backend import Role
from treewright.tree.agents.backend_factory import probe_backend
from treewright.tree.config import BackendConfig, Config, LlmIdeas, OpenaiBackend
from treewright.tree.guard import isolation, shared_paths
from treewright.tree.guard.baselines import DecidingFiles
from treewright.tree.guard.isolation import Isolation
from treewright.tree.records import events as ev
from treewright.tree.records import layout, store
from treewright.tree.records.model import Manifest
from treewright.tree.records.store import RunStore
from treewright.tree.report import write_report
from treewright.tree.repository.excluding import hide_from_status
from treewright.tree.repository.git import Root, find_repository
from treewright.tree.repository.worktrees import Worktrees
from treewright.tree.run import cleanup, policy_search
from treewright.tree.run.beam_search import BeamSearch
from treewright.tree.run.command_effects import extend
from treewright.tree.run.confirmation import Confirmer
from treewright.tree.run.coordinator import Coordinator
from treewright.tree.run.creation import ROOT_NODE, NewRun, PolicyChoice, Shape
from treewright.tree.run.faults import Paused
from treewright.tree.run.meter import Meter, caps_of, known_costs
from treewright.tree.run.notices import watching
from treewright.tree.run.outcomes import FailureRules
from treewright.tree.run.parallelism import Parallelism, executors
from treewright.tree.run.tree_search import RunOptions, RunParts, TreeSearch

_log = logging.getLogger("treewright")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run to open, as the command line or a program asks for it.

    Attributes:
        shape: The flags that define a run.
        choosing: The flags that choose its policy.
        make_baseline: Whether to sweep the root for a new run without a usable baseline.
        preflight: Whether to try the sweep and the tests on the root before a new run.
        retention: The files of candidates to keep.
        failure_rules: Retries and time limits of evaluations.
        parallelism: Where evaluations run, and how many at once.
        stale_seconds: The age at which the lease of another process counts as abandoned.
        force: Whether to take the run over from a process that still owns it.
        max_hours: The limit of this invocation.
        extend: Whether to record changed settings instead of refusing them.
    """

    repo: Path
    run_id: str | None = None
    config_path: Path | None = None
    shape: Shape = field(default_factory=Shape)
    choosing: PolicyChoice = field(default_factory=PolicyChoice)
    make_baseline: bool = False
    preflight: bool = True
    retention: cleanup.Retention = field(default_factory=cleanup.Retention)
    failure_rules: FailureRules = field(default_factory=FailureRules)
    parallelism: Parallelism = field(default_factory=Parallelism)
    stale_seconds: float = DEFAULT_STALE_SECONDS
    force: bool = False
    max_hours: float | None = None
    extend: bool = False


def locate(repo: Path, run_id: str) -> tuple[Path, Path]:
    """Return the repository's root and the directory of one of its runs."""
    root = find_repository(repo)
    return root, layout.runs_directory(root) / run_directory.validate_run_id(run_id)


def recorded_config(manifest: Manifest) -> Config:
    """Return the configuration that a run was started with, which it keeps."""
    return msgspec.convert(manifest.agent_config, type=Config)


@contextlib.contextmanager
def open_run(
    request: RunRequest,
    observer: Callable[[ev.Event], None] = lambda _: None,
    cancel: threading.Event | None = None,
) -> Iterator[Coordinator]:
    """Take the lease of a run and yield its coordinator.

    Args:
        request: The run, and the settings of this invocation.
        observer: Called with every recorded event.
        cancel: Ends the work when it is set.

    Raises:
        LockActive: Another process owns the run.
        UsageError: The request does not fit the run, or a new run fails its checks.
    """
    repo = find_repository(request.repo)
    _check_backend(request.parallelism)
    runs = layout.runs_directory(repo)
    run_id = run_directory.new_run_id(runs) if request.run_id is None else request.run_id
    run_directory.validate_run_id(run_id)
    run_dir = runs / run_id
    checked = None
    if not store.exists(run_dir):  # checked first: a run that is refused leaves no directory
        checked = _check_new_run(request, repo, run_dir, run_id)
    run_directory.prepare(run_dir)
    shared_paths.unlock(run_dir)
    with contextlib.ExitStack() as stack:
        lease = Lease.acquire(
            run_dir / layout.LEASE,
            stale_seconds=request.stale_seconds,
            force=request.force,
            after=journal.last_epoch(run_dir / layout.EVENTS),
        )
        stack.callback(_quietly, lease.release)
        shared_paths.restore(run_dir)
        owned = RunStore(run_dir, lease, observer)
        stack.callback(owned.close)
        cleanup.remove_temporaries(run_dir)
        cancel = cancel or threading.Event()
        if owned.is_new:
            new_run, root = checked or _check_new_run(request, repo, run_dir, run_id)
            _create(owned, new_run, root, cancel)
        else:
            shape = extend(owned, request.shape) if request.extend else request.shape
            shape.check_against(owned.manifest)
            request.choosing.check_against(owned.manifest)
            _mention_idle_workers(request, owned.manifest)
            _mention_changed_config(request, repo, owned.manifest)
        _check_slots(request.parallelism, recorded_config(owned.manifest))
        if not owned.manifest.dry_run:
            isolation.check(recorded_config(owned.manifest), repo)
        _mention_unknown_prices(owned.manifest)
        config = recorded_config(owned.manifest)
        isolated = None if owned.manifest.dry_run else Isolation.of(config, repo, run_dir)
        notices = stack.enter_context(watching(config.on_event, repo, isolated))
        notices.begin(owned.manifest)
        owned.watcher = notices.recorded
        try:
            make_executor = stack.enter_context(
                executors(request.parallelism, repo, run_dir, owned.manifest, lease.epoch, cancel)
            )
            options = RunOptions(
                request.retention,
                request.failure_rules,
                Meter(request.max_hours, known_costs(config)),
                request.parallelism.max_evals,
                request.parallelism.is_local,
            )
            parts = RunParts(owned, repo, config, options, cancel)
            coordinator = Coordinator(parts, _make_search(parts), make_executor)
            coordinator.recover()
            owned.snapshot()  # an owner that was killed may have left an old one
            yield coordinator
        except BaseException as error:
            if isinstance(error, Paused):
                notices.paused(str(error), owned.manifest)
            _quietly(owned.snapshot)
            raise
        owned.snapshot()


def _make_search(parts: RunParts) -> TreeSearch:
    settings = parts.manifest.policy_record
    if settings is None:
        return BeamSearch(parts)
    if settings.order == "fixed":
        return policy_search.FixedOrder(parts)
    return policy_search.LiveOrder(parts)


def search(coordinator: Coordinator, *, until_done: bool) -> Path:
    """Advance a run by one depth, or to its end, and write a report after each depth.

    Returns the path of the report. An error or an interruption leaves a report as well.
    """
    run_dir = coordinator.store.run_dir
    try:
        if until_done:
            coordinator.finish(lambda: write_report(run_dir, coordinator.manifest))
        else:
            coordinator.advance()
    except BaseException:
        with contextlib.suppress(Exception):  # the error that ended the search is the one to report
            coordinator.store.lease.check()
            write_report(run_dir, coordinator.manifest)
        raise
    return write_report(run_dir, coordinator.manifest)


def _create(owned: RunStore, new_run: NewRun, root: Root, cancel: threading.Event) -> None:
    """Record a new run once its baseline and its held-out results are measured, or remove it."""
    owner = cleanup.process_owner(owned.run_dir, owned.lease.epoch)
    trees = Worktrees(new_run.repo, owned.run_dir, new_run.run_id)
    fence = Fence(cancel, owned.lease.check)
    try:
        manifest = new_run.build(root, owner, fence)
        if manifest.confirm_configs:
            deciding = DecidingFiles(owned.run_dir, new_run.repo, new_run.run_id)
            confirmer = Confirmer(trees, new_run.config, deciding, owner, fence)
            measured = confirmer.measure_node(manifest, ROOT_NODE)
            manifest.nodes[ROOT_NODE].artifacts.heldout = measured.artifact
        owned.record(ev.RunCreated(manifest=manifest))
    except (TreewrightError, KeyboardInterrupt):
        owned.lease.check()
        untrusted.remove_tree(owned.run_dir)
        raise
    owned.snapshot()


def _check_new_run(
    request: RunRequest, repo: Path, run_dir: Path, run_id: str
) -> tuple[NewRun, Root]:
    """Return a new run and its root commit, after the checks that need no sweep."""
    config_path = _config_path(request, repo)
    hide_from_status(repo, run_directory.STATE_DIR)
    new_run = NewRun(
        repo=repo,
        run_dir=run_dir,
        run_id=run_id,
        config=configuration.load(config_path),
        config_path=config_path,
        shape=request.shape,
        make_baseline=request.make_baseline,
        preflight=request.preflight,
        policy_record=request.choosing.begin(request.shape, request.parallelism.max_evals),
    )
    root = new_run.check()
    _check_slots(request.parallelism, new_run.config)
    if not request.shape.dry_run:
        _check_agents(new_run.config, repo)
    return new_run, root


def _check_backend(parallelism: Parallelism) -> None:
    """Raise MissingExtra before a run is created that could not go on."""
    if parallelism.backend == "dask" and importlib.util.find_spec("distributed") is None:
        raise MissingExtra("--parallel-backend dask", "dask")


def _check_agents(config: Config, repo: Path) -> None:
    """Raise UsageError if an agent is missing, which would fail every evaluation."""
    agents = config.agents
    roles: list[tuple[Role, BackendConfig]] = [
        ("planner", agents.planner),
        ("coder", agents.coder),
        ("reviewer", agents.reviewer),
    ]
    for role, backend in roles:
        ok, message = probe_backend(role, backend, repo)
        if not ok:
            raise UsageError(f"agents.{role}: {message}")


def _config_path(request: RunRequest, repo: Path) -> Path:
    if request.config_path is not None:
        return request.config_path.resolve()
    return repo / configuration.DEFAULT_NAME


def _mention_changed_config(request: RunRequest, repo: Path, manifest: Manifest) -> None:
    """Warn the user that an edited configuration does not change the run."""
    path = _config_path(request, repo)
    try:
        same = configuration.load(path) == recorded_config(manifest)
    except UsageError:
        if request.config_path is not None:
            raise
        return
    if not same:
        _log.warning(
            "%s differs from the configuration that run %s was started with; the run keeps its own",
            path,
            manifest.tree_run_id,
        )


def _check_slots(parallelism: Parallelism, config: Config) -> None:
    for name, values in config.slots.items():
        if len(values) < parallelism.max_evals:
            raise UsageError(
                f"[slots] {name} has {len(values)} values for {parallelism.max_evals} evaluations "
                "at once; give as many, or lower --max-parallel-evals"
            )


def _mention_unknown_prices(manifest: Manifest) -> None:
    """Warn the user of a cap on cost that cannot count a model without a price."""
    if "cost_usd" not in caps_of(manifest) or manifest.stop_reason is not None:
        return
    config = recorded_config(manifest)
    agents = config.agents
    roles = {"planner": agents.planner, "coder": agents.coder, "reviewer": agents.reviewer}
    asked = [(role, b.endpoint) for role, b in roles.items() if isinstance(b, OpenaiBackend)]
    asked += [("ideas", each.endpoint) for each in config.ideas if isinstance(each, LlmIdeas)]
    for role, endpoint in asked:
        prices = endpoint.usd_per_million_prompt_tokens, endpoint.usd_per_million_completion_tokens
        if None in prices:
            _log.warning(
                "no price is known for %s (%s), so --max-cost-usd does not count it; give its "
                "prices in the configuration, or --max-tokens",
                role,
                endpoint.model,
            )


def _mention_idle_workers(request: RunRequest, manifest: Manifest) -> None:
    policy_record, workers = manifest.policy_record, request.parallelism.max_evals
    if (
        policy_record is not None
        and policy_record.order == "fixed"
        and workers > policy_record.lookahead
    ):
        _log.warning(
            "run %s has a lookahead of %d, so of %d workers no more than that have work",
            manifest.tree_run_id,
            policy_record.lookahead,
            workers,
        )


def _quietly(action: Callable[[], None]) -> None:
    """Run an action and ignore its error, because a more important one is being reported."""
    with contextlib.suppress(Exception):
        action()
