"""The functions that run on a dask worker: a request begins once, and stops when cancelled.

The workers of a local cluster load this module when they start (`preload`).
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator

import treewright
from treewright.kernel.executors.protocol import (
    NotBegun,
    Outcome,
    Request,
    Stop,
    WorkerLost,
    WorkerUnfit,
    stoppable_by,
)

_POLL_SECONDS = 2.0
_EXECUTING = ("executing", "long-running")


def dask_setup(worker: object) -> None:
    """Leave the terminal's foreground process group.

    Ctrl-C then reaches only the coordinator, which ends its workers in order. Workers end by
    themselves when the coordinator is killed.
    """
    os.setpgrp()


def local_version() -> str:
    """Return the version, which must be equal on the coordinator and on every worker."""
    return treewright.__version__


def worker_name() -> str:
    """Return the name of this worker: its host and process."""
    return f"{socket.gethostname()}:{os.getpid()}"


def check_version(version: str) -> None:
    """Raise WorkerUnfit if the coordinator has another version."""
    if version != treewright.__version__:
        raise WorkerUnfit(
            f"a worker on {socket.gethostname()} has treewright {treewright.__version__}, the "
            f"coordinator {version}; install the same version on both"
        )


def run_request(
    version: str, name: str, work: Callable[[Request], Outcome], request: Request
) -> tuple[Outcome, str, int]:
    """Run a request on this worker; return its outcome with the name and the id of the worker.

    `name` is the name of the request, from which the events of the cluster get theirs.
    """
    check_version(version)
    begun, stopped = event_names(name)
    begin_once(begun)
    with stop_on_event(stopped) as stop, stoppable_by(stop):
        if stop.is_set():
            raise NotBegun("cancelled")
        return work(request), worker_name(), os.getpid()


def event_names(name: str) -> tuple[str, str]:
    """Return the names of the two events of a request: it has begun, it has to stop."""
    return f"{name}-begun", stop_event(name)


def stop_event(name: str) -> str:
    """Return the name of the event that stops a request."""
    return f"{name}-stop"


def begin_once(name: str) -> None:
    """Record that a request has begun; raise WorkerLost if it had begun before.

    A dask scheduler starts a task again when its worker died, even when only the result was lost.
    The coordinator decides about another try, so a second start only reports the loss. The
    coordinator clears the event when it has the result.
    """
    import distributed

    begun = distributed.Event(name, client=distributed.get_client())
    if begun.is_set():
        raise WorkerLost("the worker that had the request was lost")
    begun.set()


@contextlib.contextmanager
def stop_on_event(event_name: str) -> Iterator[Stop]:
    """Give a stop that is set when the coordinator sets the event of the cluster.

    It is also set when the cluster no longer wants the result, because the coordinator is gone.
    """
    import distributed

    stop, finished = Stop(), threading.Event()
    worker = distributed.get_worker()
    key = worker.get_current_task()
    remote = distributed.Event(event_name, client=distributed.get_client())

    def wanted() -> bool:
        task = worker.state.tasks.get(key)
        return task is not None and task.state in _EXECUTING

    def watch() -> None:
        while not finished.is_set():
            try:
                asked_to_stop = remote.wait(_POLL_SECONDS)
            except Exception:  # the scheduler does not answer; dask ends the worker
                asked_to_stop = False
                finished.wait(_POLL_SECONDS)
            if finished.is_set():
                return
            if asked_to_stop or not wanted():
                stop.set()
                return

    threading.Thread(target=watch, name="stop-watch", daemon=True).start()
    try:
        yield stop
    finally:
        finished.set()
