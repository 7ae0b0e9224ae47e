"""The worker's side of a request on a dask cluster: begun once, stopped when told to."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator

import treewright
from treewright.kernel.executors.base import (
    NotBegun,
    Outcome,
    Request,
    Stop,
    WorkerLost,
    WorkerUnfit,
    working_under,
)

_POLL_SECONDS = 2.0
_EXECUTING = ("executing", "long-running")


def version_here() -> str:
    """What must be equal on the coordinator and on every worker."""
    return treewright.__version__


def name_here() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def check_version(version: str) -> None:
    """Refuses the work of a coordinator of another version."""
    if version != treewright.__version__:
        raise WorkerUnfit(
            f"a worker on {socket.gethostname()} has treewright {treewright.__version__}, the "
            f"coordinator {version}; install the same version on both"
        )


def run_there(
    version: str, name: str, work: Callable[[Request], Outcome], request: Request
) -> tuple[Outcome, str, int]:
    """One request on this worker. `name` is its own; the marks of the cluster are made of it."""
    check_version(version)
    begun, stopped = marks(name)
    begin_once(begun)
    with watching(stopped) as stop, working_under(stop):
        if stop.is_set():
            raise NotBegun("cancelled")
        return work(request), name_here(), os.getpid()


def marks(name: str) -> tuple[str, str]:
    """The cluster's events of a request: that it was begun, and that it has to end."""
    return f"{name}-begun", stop_mark(name)


def stop_mark(name: str) -> str:
    return f"{name}-stop"


def begin_once(name: str) -> None:
    """A scheduler starts a task again when its worker died, by its own settings, even when
    only its result was lost. Whether to try again is our coordinator's decision, so a second
    start only reports the loss. The coordinator clears the mark once it has the result."""
    import distributed

    begun = distributed.Event(name, client=distributed.get_client())
    if begun.is_set():
        raise WorkerLost("the worker that had the request was lost")
    begun.set()


@contextlib.contextmanager
def watching(event_name: str) -> Iterator[Stop]:
    """A stop that is set when the coordinator sets the cluster's event, and when the
    cluster no longer wants this task's result: its coordinator is gone."""
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
            except Exception:  # the scheduler does not answer; the worker will end by itself
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
