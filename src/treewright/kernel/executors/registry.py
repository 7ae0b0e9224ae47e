"""The executors there are, by name: those in the box, and those of plug-ins.

An executor is one file with a `Backend` in it. Ours are named below; another package names its
own under the entry-point group `treewright.executors`. Both are loaded when they are chosen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeAlias

from treewright.kernel.errors import UsageError
from treewright.kernel.executors.base import Executor, Outcome, Request

GROUP = "treewright.executors"
_HERE = "treewright.kernel.executors"
_BUILT_IN = {
    "inline": f"{_HERE}.inline:backend",
    "threads": f"{_HERE}.threads:backend",
    "threadpool": f"{_HERE}.threads:backend",
    "dask": f"{_HERE}.dask:backend",
}
DEFAULT = "threadpool"

Make: TypeAlias = Callable[[Callable[[Request], Outcome]], Executor[Request, Outcome]]
"""From what is to be done with a request to the executor that has it done."""


@dataclass(frozen=True, slots=True)
class Place:
    """What the caller says about where to run: how many requests at once; the address of
    workers that are running; a directory for those that have to be started."""

    capacity: int
    address: str | None = None
    directory: str | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to run requests; `open` holds what its executors share, such as a connection.

    `travels`: work and requests are sent to processes that share nothing with this one.
    `addressed`: it can use workers that are running, by their address.
    `single`: one request at a time.
    """

    open: Callable[[Place], AbstractContextManager[Make[Any, Any]]]
    travels: bool = False
    addressed: bool = False
    single: bool = False


@lru_cache(maxsize=1)
def known() -> dict[str, EntryPoint]:
    """By name, those in the box first. A plug-in cannot take a name that is in use."""
    found = {name: EntryPoint(name, value, GROUP) for name, value in _BUILT_IN.items()}
    for entry in entry_points(group=GROUP):
        if entry.name in found:
            taken = f"calls its executor {entry.name!r}, as ours"
            raise UsageError(f"the plug-in {entry.value} {taken}")
        found[entry.name] = entry
    return found


def find(name: str) -> Backend:
    """The backend of that name, as `--parallel-backend` or `backend=` gives it."""
    entry = known().get(name)
    if entry is None:
        there = ", ".join(known())
        raise UsageError(f"no executor {name!r} for a parallel-backend; there are {there}")
    try:
        loaded = entry.load()
    except Exception as error:  # somebody else's module may raise anything
        problem = f"{type(error).__name__}: {error}"
        raise UsageError(f"the executor {name!r} cannot be loaded: {problem}") from None
    if not isinstance(loaded, Backend):
        raise UsageError(f"the executor {name!r} is no Backend: {entry.value}")
    return loaded


def choose(name: str | None, address: str | None, default: str = DEFAULT) -> Backend:
    """The named backend; without a name `dask` for an address, else the default."""
    chosen = name or ("dask" if address else default)
    backend = find(chosen)
    if address is not None and not backend.addressed:
        raise UsageError(f"the executor {chosen!r} takes no cluster's address; dask does")
    return backend


@contextlib.contextmanager
def running(
    backend: Backend, work: Callable[[Request], Outcome], place: Place
) -> Iterator[Executor[Request, Outcome]]:
    """An executor for one piece of work, closed at the end."""
    with backend.open(place) as make:
        executor = make(work)
        try:
            yield executor
        finally:
            executor.close()
