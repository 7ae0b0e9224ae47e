"""An executor on a dask.distributed cluster: a local one, or one that is running already.

The function and the request are sent to the worker, so the worker must be able to import both.
`dask_worker` has the functions that run there. If its worker dies, a request ends with WorkerLost:
the caller decides about another try, and the cluster is told not to retry by itself.
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
from treewright.kernel.executors.backends import Backend, ExecutorFactory, ExecutorOptions
from treewright.kernel.executors.protocol import (
    Done,
    Outcome,
    Request,
    Worker,
    WorkerLost,
    WorkerUnfit,
)

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
    """The methods of `distributed.Client` that the executor uses."""

    status: str

    def submit(self, function: Any, *args: Any, **options: Any) -> Any: ...

    def processing(self) -> dict[str, Any]: ...

    def cancel(self, futures: list[Any]) -> Any: ...


@contextlib.contextmanager
def connect(address: str | None, workers: int, directory: str) -> Iterator[Any]:
    """Give a client of the cluster at `address`, or of a local cluster that ends with the block."""
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
    """Turn off the logs of dask, which print tracebacks of errors that are reported in one line."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    for name in {*names, "distributed", "tornado.application", "asyncio"}:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _local_cluster(workers: int, directory: str) -> Any:
    import distributed

    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",  # its web server cannot be turned off
        local_directory=directory,
        preload=["treewright.kernel.executors.dask_worker"],
        silence_logs=logging.CRITICAL + 1,
    )


def check_workers(client: Any, address: str, capacity: int, what: str) -> None:
    """Raise ClusterError if a worker cannot do the work; warn if there are too few workers.

    `what` is the word for the requests in messages.
    """
    here = treewright.__version__
    for worker, found in client.run(dask_worker.local_version, on_error="return").items():
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


class FunctionExecutor(Generic[Request, Outcome]):
    """Runs functions that return `(outcome, worker name, process id)` on the workers of a cluster.

    When `cancel` is set, requests that no worker has are dropped. Work that has begun on a worker
    has to end by itself.
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
        """Send `work(*arguments)` to the cluster; its completion has `request`."""
        self._check_connection()
        future = self._client.submit(work, *arguments, pure=False, retries=0)
        self._in_flight[id(future)] = request, future
        future.add_done_callback(lambda done: self._done.put((request, done)))

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        """Wait for the next completion, and check regularly that the scheduler answers."""
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
        """Drop a request that no worker takes soon. The caller stops work that has begun."""
        self._unwanted[id(request)] = time.monotonic()

    def close(self) -> None:
        """Give up the requests under way; the scheduler tells the workers."""
        for _, future in list(self._in_flight.values()):
            future.release()  # the callback holds a reference to it
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
        """Drop cancelled requests that no worker has; without workers they would never end."""
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
        with contextlib.suppress(OSError):  # `_check_connection` reports a lost connection
            taken = {key for keys in self._client.processing().values() for key in keys}
            self._client.cancel([future for future in waiting if future.key not in taken])

    def _check_connection(self) -> None:
        if self._client.status != "running":
            raise ClusterError(
                "the connection to the dask scheduler was lost; what was completed is kept, "
                "run the same command again once the cluster is back"
            )


class DaskExecutor(Generic[Request, Outcome]):
    """Runs requests on the workers of a cluster; each request begins once and can be cancelled."""

    def __init__(self, client: Any, capacity: int, work: Callable[[Request], Outcome]) -> None:
        self.capacity = capacity
        self._client = client
        self._work = work
        self._engine: FunctionExecutor[Request, Outcome] = FunctionExecutor(client, capacity)
        self._names: dict[int, str] = {}

    def submit(self, request: Request) -> None:
        name = self._names[id(request)] = f"treewright-{secrets.token_hex(8)}"
        self._engine.submit(
            request, dask_worker.run_request, treewright.__version__, name, self._work, request
        )

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        done = self._engine.next_done(timeout)
        if done is not None and (name := self._names.pop(id(done.request), None)) is not None:
            for event in dask_worker.event_names(name):
                clear_event(self._client, event)
        return done

    def cancel(self, request: Request) -> None:
        name = self._names.get(id(request))
        if name is None:
            return
        self._engine.cancel(request)
        # In a thread, because the scheduler may take a while to answer.
        threading.Thread(target=self._set_stop, args=(name,), daemon=True).start()

    def close(self) -> None:
        self._engine.close()

    def _set_stop(self, name: str) -> None:
        import distributed

        with contextlib.suppress(Exception):  # the cluster may be gone
            distributed.Event(dask_worker.stop_event(name), client=self._client).set()


def clear_event(client: Any, name: str) -> None:
    """Clear an event of the cluster, so that the scheduler can forget it."""
    import distributed

    with contextlib.suppress(Exception):
        distributed.Event(name, client=client).clear()


@contextlib.contextmanager
def _open(options: ExecutorOptions) -> Iterator[ExecutorFactory[Any, Any]]:
    with contextlib.ExitStack() as stack:
        directory = options.directory or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="treewright-")
        )
        client = stack.enter_context(connect(options.address, options.capacity, directory))
        if options.address is not None:
            check_workers(client, options.address, options.capacity, options.unit)
        yield lambda work: DaskExecutor(client, options.capacity, work)


backend = Backend(_open, is_remote=True, takes_address=True)


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
