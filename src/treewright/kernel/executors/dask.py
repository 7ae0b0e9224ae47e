"""Requests handed to a dask.distributed cluster: a local one, or one that is running.

The function and its argument travel to the worker, so both must be importable and
self-contained there. A worker that dies is a WorkerLost; what to do about it is the
caller's decision, so the engine is told not to retry by itself.
"""

from __future__ import annotations

import contextlib
import logging
import queue
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol

from treewright.kernel.errors import MissingExtra, TreewrightError
from treewright.kernel.executors.base import Done, Outcome, Request, Worker, WorkerLost

_CONNECT_SECONDS = 20
_SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.comm.timeouts.connect": f"{_CONNECT_SECONDS}s",
    "distributed.admin.large-graph-warning-threshold": "1GB",
}


class ClusterError(TreewrightError):
    """The cluster cannot be reached, or was lost as a whole."""


class _Client(Protocol):
    """What is used of `distributed.Client`."""

    status: str

    def submit(self, function: Any, *args: Any, **options: Any) -> Any: ...


@contextlib.contextmanager
def connect(address: str | None, workers: int, directory: str) -> Iterator[Any]:
    """A client of the cluster at `address`, or of a local one that ends with the block."""
    try:
        import dask.config
        import distributed
    except ImportError:
        raise MissingExtra("--parallel-backend dask", "dask") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set(_SETTINGS), contextlib.ExitStack() as stack:
        try:
            target = address or stack.enter_context(_local_cluster(workers, directory))
            client = distributed.Client(target, timeout=_CONNECT_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(f"no dask scheduler answers at {address}: {error}") from None
        except RuntimeError as error:
            raise ClusterError(f"the local dask cluster did not start: {error}") from None
        yield stack.enter_context(client)


def _local_cluster(workers: int, directory: str) -> Any:
    import distributed

    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="",
        local_directory=directory,
        silence_logs=logging.CRITICAL,
    )


class DaskExecutor(Generic[Request, Outcome]):
    """`work(request)` runs on a worker and returns `(outcome, worker name, pid)`."""

    def __init__(
        self,
        client: _Client,
        work: Callable[[Request], tuple[Outcome, str, int]],
        capacity: int,
    ) -> None:
        self.capacity = capacity
        self._client = client
        self._work = work
        self._done: queue.SimpleQueue[tuple[Request, Any]] = queue.SimpleQueue()
        self._in_flight: dict[int, Any] = {}

    def submit(self, request: Request) -> None:
        future = self._client.submit(self._work, request, pure=False, retries=0)
        self._in_flight[id(future)] = future
        future.add_done_callback(lambda done: self._done.put((request, done)))

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        try:
            request, future = self._done.get(timeout=timeout)
        except queue.Empty:
            return None
        self._in_flight.pop(id(future), None)
        if self._client.status != "running":
            raise ClusterError(
                "the connection to the dask scheduler was lost; what was completed is kept, "
                "run the same command again once the cluster is back"
            )
        if future.status == "finished":
            outcome, name, pid = future.result()
            return Done(request, outcome, worker=Worker(name, pid))
        return Done(request, None, _failure(future))

    def close(self) -> None:
        self._in_flight.clear()


def _failure(future: Any) -> BaseException:
    from distributed import KilledWorker
    from distributed.comm.core import CommClosedError

    if future.status in ("cancelled", "lost"):
        return WorkerLost("the cluster lost the evaluation")
    error = future.exception()
    if isinstance(error, KilledWorker | CommClosedError | TimeoutError):
        return WorkerLost("the worker running the evaluation was lost")
    return error
