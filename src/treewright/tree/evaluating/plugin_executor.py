"""The executor for evaluations on a plug-in's workers, which share nothing with the coordinator.

A plug-in only has to call `evaluate_parcel`, found by its name, on a `Parcel` of bytes somewhere
else. `dask_executor` serves dask, which can also forward cancellation, usage and claims.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

import treewright
from treewright.kernel.executors import backends
from treewright.kernel.executors.dask_worker import check_version
from treewright.kernel.executors.protocol import Done, Executor, WorkerLost, current_stop
from treewright.kernel.procs.cancellation import Fence
from treewright.tree.evaluating.remote_worker import RemoteTask, evaluate_in, mark
from treewright.tree.evaluating.transport import Packer, received, remote_url
from treewright.tree.evaluating.worker import Outcome, Request


@dataclass(frozen=True, slots=True)
class Parcel:
    """A request with everything that it depends on; `name` is unique in a run."""

    name: str
    version: str
    task: bytes
    bundle: bytes


def evaluate_parcel(parcel: Parcel) -> bytes:
    """Execute a parcel in a temporary directory; the version is checked before decoding."""
    check_version(parcel.version)
    task = msgspec.msgpack.decode(parcel.task, type=RemoteTask)
    with tempfile.TemporaryDirectory(prefix="treewright-") as directory:
        result = evaluate_in(Path(directory), task, parcel.bundle, current_stop())
    return msgspec.msgpack.encode(result)


class PluginExecutor:
    """Sends requests through another executor and unpacks the results; serves one scheduler."""

    def __init__(self, engine: Executor[Parcel, bytes], packer: Packer, fence: Fence) -> None:
        self.capacity = engine.capacity
        self._engine = engine
        self._packer = packer
        self._fence = fence
        self._out: dict[str, tuple[Request, Parcel]] = {}
        self._is_cancelled = False

    def submit(self, request: Request) -> None:
        task, bundle = self._packer.pack(request)
        parcel = Parcel(mark("", request), treewright.__version__, task, bundle)
        self._out[parcel.name] = (request, parcel)
        self._engine.submit(parcel)

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        if self._fence.is_set() and not self._is_cancelled:
            self._is_cancelled = True
            for _, parcel in self._out.values():
                self._engine.cancel(parcel)
        done = self._engine.next_done(timeout)
        if done is None:
            return None
        request, _ = self._out.pop(done.request.name)
        if isinstance(done.error, WorkerLost):
            self._packer.clear()
        return received(request, done.outcome, done.error, done.worker, self._fence)

    def cancel(self, request: Request) -> None:
        found = self._out.get(mark("", request))
        if found is not None:
            self._engine.cancel(found[1])

    def close(self) -> None:
        self._engine.close()


@contextlib.contextmanager
def plugin_executor(
    backend: backends.Backend,
    place: backends.ExecutorOptions,
    *,
    repo: Path,
    dry_run: bool,
    remote: str | None,
    fence: Fence,
) -> Iterator[Callable[[object], PluginExecutor]]:
    """Open the backend and yield a function that makes executors."""
    url = remote_url(repo, remote) if remote else None
    with backend.open(place) as make:

        def executor(work: object) -> PluginExecutor:
            packer = Packer(dry_run=dry_run, remote=remote, remote_url=url, work=work)
            return PluginExecutor(make(evaluate_parcel), packer, fence)

        yield executor
