"""Backends: the kinds of executors, by name.

`treewright tree`, `bank`, `bg` and `Search.run` choose a backend by its name. Those in the box are
named below; another package registers its own under the entry-point group `treewright.executors`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias

from treewright.kernel.errors import UsageError
from treewright.kernel.executors.protocol import Executor, Outcome, Request
from treewright.kernel.plugins import Plugins

_HERE = "treewright.kernel.executors"
DEFAULT = "threadpool"

ExecutorFactory: TypeAlias = Callable[[Callable[[Request], Outcome]], Executor[Request, Outcome]]
"""Makes an executor from the work: a function from a request to its outcome."""


@dataclass(frozen=True, slots=True)
class ExecutorOptions:
    """The options of an executor.

    Attributes:
        capacity: How many requests may run at once.
        address: The address of workers that are running already.
        directory: A directory for the files of workers that have to be started.
        unit: The word for requests in messages.
    """

    capacity: int
    address: str | None = None
    directory: str | None = None
    unit: str = "requests"


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of executor.

    Attributes:
        open: A context manager for the shared parts of executors, such as a connection. It gives
            the function that makes an executor.
        is_remote: Whether work and requests are sent to processes that share nothing with this one.
        takes_address: Whether the backend can use workers that are running, by their address.
        is_sequential: Whether an executor runs one request at a time.
    """

    open: Callable[[ExecutorOptions], AbstractContextManager[ExecutorFactory[Any, Any]]]
    is_remote: bool = False
    takes_address: bool = False
    is_sequential: bool = False


BACKENDS: Plugins[Backend] = Plugins(
    "executor",
    "treewright.executors",
    {
        "inline": f"{_HERE}.inline:backend",
        "threads": f"{_HERE}.threads:backend",
        "threadpool": f"{_HERE}.threads:backend",
        "dask": f"{_HERE}.dask:backend",
    },
    lambda name, loaded: "" if isinstance(loaded, Backend) else "it is no Backend",
)


def choose(name: str | None, address: str | None, default: str = DEFAULT) -> Backend:
    """Return the named backend; without a name `dask` if there is an address, else the default.

    Raises:
        UsageError: There is no such backend, or it takes no address.
    """
    chosen = name or ("dask" if address else default)
    backend = BACKENDS.get(chosen)
    if address is not None and not backend.takes_address:
        raise UsageError(f"the executor {chosen!r} takes no cluster's address; dask does")
    return backend


@contextlib.contextmanager
def open_executor(
    backend: Backend, work: Callable[[Request], Outcome], options: ExecutorOptions
) -> Iterator[Executor[Request, Outcome]]:
    """Open an executor for one function, and close it at the end of the block."""
    with backend.open(options) as make:
        executor = make(work)
        try:
            yield executor
        finally:
            executor.close()
