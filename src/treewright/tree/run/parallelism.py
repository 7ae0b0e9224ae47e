"""The choice of an executor: where evaluations run, and how many at once."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from treewright.kernel.errors import LeaseLost, UsageError
from treewright.kernel.executors import backends
from treewright.kernel.executors.inline import InlineExecutor
from treewright.kernel.procs.cancellation import Fence
from treewright.kernel.storage import untrusted
from treewright.kernel.storage.lease import check_epoch
from treewright.tree.records import layout
from treewright.tree.records.model import Manifest
from treewright.tree.run.loop import ExecutorFactory

_DASK = "dask"


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Where evaluations run.

    Attributes:
        max_evals: The most evaluations at a time.
        backend: The name of an executor in `kernel.executors`.
        cluster: The address of workers that are running.
        cluster_remote: A git remote that the workers fetch from; commits it has are not sent.
    """

    max_evals: int = 1
    backend: str = backends.DEFAULT
    cluster: str | None = None
    cluster_remote: str | None = None

    def __post_init__(self) -> None:
        chosen = backends.BACKENDS.get(self.backend)
        if (self.cluster and not chosen.takes_address) or (
            self.cluster_remote and not chosen.is_remote
        ):
            raise UsageError(
                "--cluster and --cluster-remote need --parallel-backend dask, or a plug-in's that "
                "takes them"
            )
        if chosen.is_sequential and self.max_evals > 1:
            raise UsageError(
                f"--parallel-backend {self.backend} evaluates one at a time; "
                "leave out --max-parallel-evals"
            )

    @property
    def is_local(self) -> bool:
        """Whether every evaluation runs on this machine."""
        own_workers = self.backend == _DASK and self.cluster is None
        return own_workers or not backends.BACKENDS.get(self.backend).is_remote


@contextlib.contextmanager
def executors(
    parallelism: Parallelism,
    repo: Path,
    run_dir: Path,
    manifest: Manifest,
    epoch: int,
    cancel: threading.Event,
) -> Iterator[ExecutorFactory]:
    """Yield the factory of executors; a cluster stays connected until the context ends."""
    if parallelism.max_evals == 1 and parallelism.backend == backends.DEFAULT:
        yield InlineExecutor
        return
    backend = backends.BACKENDS.get(parallelism.backend)
    options = backends.ExecutorOptions(
        parallelism.max_evals, parallelism.cluster, unit="evaluations"
    )
    if not backend.is_remote:
        with backend.open(options) as factory:
            yield factory
        return
    from treewright.tree.evaluating.remote_executor import remote_executor

    fence = Fence(cancel, lambda: check_epoch(run_dir / layout.LEASE, epoch))
    with (
        _cluster_directory(run_dir, epoch, fence) as directory,
        remote_executor(
            backend,
            replace(options, directory=str(directory)),
            repo=repo,
            dry_run=manifest.dry_run,
            remote=parallelism.cluster_remote,
            fence=fence,
        ) as factory,
    ):
        yield factory


@contextlib.contextmanager
def _cluster_directory(run_dir: Path, epoch: int, fence: Fence) -> Iterator[Path]:
    """Yield the directory of a local cluster. Every owner has another one, so that an owner that
    was replaced removes nothing of its successor."""
    clusters = run_dir / layout.CLUSTER
    if clusters.is_dir():
        for path in clusters.iterdir():
            if not path.name.isdecimal() or int(path.name) < epoch:
                untrusted.remove_tree(path)  # its owner was killed
    own = clusters / str(epoch)
    try:
        yield own
    finally:
        untrusted.remove_tree(own)
        with contextlib.suppress(OSError, LeaseLost):
            fence.check()
            clusters.rmdir()
