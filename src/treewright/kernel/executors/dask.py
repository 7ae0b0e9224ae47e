"""Requests handed to a dask.distributed cluster: a local one, or one that is running.

The function and its argument travel to the worker, so both must be importable and
self-contained there; `dask_worker` is the other side. A worker that dies is a WorkerLost; what to
do about it is the caller's decision, so the engine is told not to retry by itself.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import secrets
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol

import treewright
from treewright.kernel.errors import MissingExtra, TreewrightError
from treewright.kernel.executors import dask_worker
from treewright.kernel.executors.base import Done, Outcome, Request, Worker, WorkerLost, WorkerUnfit
from treewright.kernel.executors.registry import Backend, Make, Place

_CONNECT_SECONDS = 10
_TICK_SECONDS = 0.5
_RESULT_SECONDS = 30
_DROP_SECONDS = 3.0
_SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.comm.timeouts.connect": f"{_CONNECT_SECONDS}s",
    "distributed.admin.large-graph-warning-threshold": "1GB",
}

_log = logging.getLogger("treewright")


class ClusterError(TreewrightError):
    """The cluster cannot be reached, or was lost as a whole."""


class _Client(Protocol):
    """What is used of `distributed.Client`."""

    status: str

    def submit(self, function: Any, *args: Any, **options: Any) -> Any: ...

    def processing(self) -> dict[str, Any]: ...

    def cancel(self, futures: list[Any]) -> Any: ...


@contextlib.contextmanager
def connect(address: str | None, workers: int, directory: str) -> Iterator[Any]:
    """A client of the cluster at `address`, or of a local one that ends with the block."""
    try:
        import dask.config
        import distributed
    except ImportError:
        raise MissingExtra("--parallel-backend dask", "dask") from None
    _silence()
    with dask.config.set(_SETTINGS), contextlib.ExitStack() as stack:
        try:
            target = address or stack.enter_context(_local_cluster(workers, directory))
            client = distributed.Client(target, timeout=_CONNECT_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(f"no dask scheduler answers at {address}: {error}") from None
        except RuntimeError as error:
            raise ClusterError(f"the local dask cluster did not start: {error}") from None
        yield stack.enter_context(client)


def _silence() -> None:
    """Its loggers print tracebacks of what we report in one line; each has its own level."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    for name in {*names, "distributed", "tornado.application", "asyncio"}:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _local_cluster(workers: int, directory: str) -> Any:
    import distributed

    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",  # its web server cannot be left out, but kept at home
        local_directory=directory,
        preload=["treewright.kernel.executors.local_worker"],
        silence_logs=logging.CRITICAL + 1,
    )


def check_workers(client: Any, address: str, capacity: int, what: str) -> None:
    """Before anything is queued: can those that are there do the work? `what` is its name."""
    here = treewright.__version__
    for worker, found in client.run(dask_worker.version_here, on_error="return").items():
        if isinstance(found, BaseException):
            raise ClusterError(
                f"the dask worker at {worker} cannot import treewright ({found}); install "
                f"treewright[dask]=={here} on it"
            )
        if found != here:
            raise ClusterError(
                f"the dask worker at {worker} has treewright {found}, this is {here}; "
                "install the same version on both"
            )
    threads = sum(client.nthreads().values())
    if threads == 0:
        _log.warning("the cluster at %s has no workers yet; %s wait for some", address, what)
    elif threads < capacity:
        _log.warning(
            "the cluster at %s has room for %d %s at once; %d were asked for, "
            "the others wait in its queue",
            address,
            threads,
            what,
            capacity,
        )


class DaskExecutor(Generic[Request, Outcome]):
    """A submitted function runs on a worker and returns `(outcome, worker name, pid)`.

    What runs has to notice by itself that `cancel` is set; what no worker has yet is dropped.
    """

    def __init__(
        self, client: _Client, capacity: int, cancel: threading.Event | None = None
    ) -> None:
        self.capacity = capacity
        self._client = client
        self._cancel = cancel
        self._cancelled_at: float | None = None
        self._done: queue.SimpleQueue[tuple[Request, Any]] = queue.SimpleQueue()
        self._in_flight: dict[int, tuple[Request, Any]] = {}
        self._unwanted: dict[int, float] = {}

    def submit(
        self, request: Request, work: Callable[..., tuple[Outcome, str, int]], *arguments: Any
    ) -> None:
        """Hands `work(*arguments)` to the cluster; `request` names it when it is done."""
        self._check_connection()
        future = self._client.submit(work, *arguments, pure=False, retries=0)
        self._in_flight[id(future)] = request, future
        future.add_done_callback(lambda done: self._done.put((request, done)))

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        """As of every executor; looks now and then whether the scheduler is still there."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = _TICK_SECONDS if until is None else min(_TICK_SECONDS, until - time.monotonic())
            try:
                request, future = self._done.get(timeout=max(0.0, left))
            except queue.Empty:
                self._check_connection()
                self._drop_waiting()
                if until is not None and time.monotonic() >= until:
                    return None
                continue
            self._in_flight.pop(id(future), None)
            self._unwanted.pop(id(request), None)
            return self._finished(request, future)

    def cancel(self, request: Request) -> None:
        """Drops it if no worker takes it within moments; telling one is the caller's."""
        self._unwanted[id(request)] = time.monotonic()

    def close(self) -> None:
        """Lets go of what is under way; the scheduler tells the workers."""
        for _, future in list(self._in_flight.values()):
            future.release()  # the callback would keep it alive
        self._in_flight.clear()

    def _finished(self, request: Request, future: Any) -> Done[Request, Outcome]:
        if future.status == "finished":
            try:
                outcome, name, pid = future.result(timeout=_RESULT_SECONDS)
            except Exception:
                self._check_connection()
                lost = WorkerLost("the worker was lost before its result was fetched")
                return Done(request, None, lost)
            return Done(request, outcome, worker=Worker(name, pid))
        self._check_connection()
        error = _failure(future)
        if isinstance(error, WorkerUnfit):
            raise ClusterError(str(error))
        if isinstance(error, ModuleNotFoundError):
            raise ClusterError(f"a dask worker or the scheduler lacks a module: {error}")
        return Done(request, None, error)

    def _drop_waiting(self) -> None:
        """Of what is cancelled: a cluster without workers would never hand anything back."""
        now = time.monotonic()
        if self._cancelled_at is None and self._cancel is not None and self._cancel.is_set():
            self._cancelled_at = now
        waiting = [
            future
            for request, future in list(self._in_flight.values())
            if future.status == "pending"
            and now - self._unwanted.get(id(request), self._cancelled_at or now) >= _DROP_SECONDS
        ]
        if not waiting:
            return
        with contextlib.suppress(OSError):  # of a lost connection, which the next look reports
            taken = {key for keys in self._client.processing().values() for key in keys}
            self._client.cancel([future for future in waiting if future.key not in taken])

    def _check_connection(self) -> None:
        if self._client.status != "running":
            raise ClusterError(
                "the connection to the dask scheduler was lost; what was completed is kept, "
                "run the same command again once the cluster is back"
            )


class WorkExecutor(Generic[Request, Outcome]):
    """One piece of work for every request, with its own begin and its own stop on the worker."""

    def __init__(self, client: Any, capacity: int, work: Callable[[Request], Outcome]) -> None:
        self.capacity = capacity
        self._client = client
        self._work = work
        self._engine: DaskExecutor[Request, Outcome] = DaskExecutor(client, capacity)
        self._names: dict[int, str] = {}

    def submit(self, request: Request) -> None:
        name = self._names[id(request)] = f"treewright-{secrets.token_hex(8)}"
        self._engine.submit(
            request, dask_worker.run_there, treewright.__version__, name, self._work, request
        )

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        done = self._engine.next_done(timeout)
        if done is not None and (name := self._names.pop(id(done.request), None)) is not None:
            for mark in dask_worker.marks(name):
                clear(self._client, mark)
        return done

    def cancel(self, request: Request) -> None:
        name = self._names.get(id(request))
        if name is None:
            return
        self._engine.cancel(request)
        # The scheduler may take a while to answer, and nobody has to wait for that.
        threading.Thread(target=self._tell, args=(name,), daemon=True).start()

    def close(self) -> None:
        self._engine.close()

    def _tell(self, name: str) -> None:
        import distributed

        with contextlib.suppress(Exception):  # the cluster may be what was lost
            distributed.Event(dask_worker.stop_mark(name), client=self._client).set()


def clear(client: Any, mark: str) -> None:
    """Forgets an event of the cluster; one that is left costs the scheduler a name."""
    import distributed

    with contextlib.suppress(Exception):
        distributed.Event(mark, client=client).clear()


@contextlib.contextmanager
def _open(place: Place) -> Iterator[Make[Any, Any]]:
    with contextlib.ExitStack() as stack:
        directory = place.directory or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="treewright-")
        )
        client = stack.enter_context(connect(place.address, place.capacity, directory))
        if place.address is not None:
            check_workers(client, place.address, place.capacity, "requests")
        yield lambda work: WorkExecutor(client, place.capacity, work)


backend = Backend(_open, travels=True, addressed=True)


def _failure(future: Any) -> BaseException:
    from distributed import KilledWorker
    from distributed.client import FutureCancelledError
    from distributed.comm.core import CommClosedError

    if future.status in ("cancelled", "lost"):
        return WorkerLost("the cluster lost the request")
    try:
        error = future.exception(timeout=_CONNECT_SECONDS)
    except (FutureCancelledError, TimeoutError):
        return WorkerLost("the cluster lost the request")
    if error is None or isinstance(error, KilledWorker | CommClosedError | TimeoutError):
        return WorkerLost("the worker that had the request was lost")
    return error
