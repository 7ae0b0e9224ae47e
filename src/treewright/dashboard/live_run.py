"""A run that may still grow: whether a process works on it, and the new lines of its journal.

`LiveRun` follows a journal, and `RunCache` keeps the runs that were used last.
"""

from __future__ import annotations

import socket
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Generic, Literal, Self, TypeVar

import msgspec

from treewright.dashboard import run_files
from treewright.dashboard.roots import RunRef
from treewright.dashboard.run_files import Signature, signature
from treewright.kernel.errors import StorageError
from treewright.kernel.procs import proctree
from treewright.kernel.storage import journal
from treewright.kernel.storage.lease import Owner, current_owner

State = Literal["running", "stalled", "paused", "stopped", "damaged"]
_MISSED_HEARTBEATS = 3
T = TypeVar("T")


class Liveness(msgspec.Struct, frozen=True):
    """The state of a run. `detail` explains it in words; `heartbeat_age` is in seconds."""

    state: State
    detail: str
    host: str = ""
    pid: int | None = None
    heartbeat_age: float | None = None


def read_liveness(lease_dir: Path, stop_reason: str | None) -> Liveness:
    """Return the state of a run from its lease, which is only read.

    Args:
        stop_reason: Why the run ended, in words; None if it has not ended.
    """
    try:
        found = current_owner(lease_dir)
    except (StorageError, OSError):
        found = None
    if found is None or found[0].released_at is not None:
        if stop_reason is not None:
            return Liveness("stopped", stop_reason)
        return Liveness("paused", "no process is working on it; the same command continues it")
    owner, age = found
    process = f"process {owner.pid} on {owner.host}"
    if _is_gone(owner):
        if stop_reason is not None:
            return Liveness("stopped", stop_reason)
        return _of(owner, age, "stalled", f"{process} is gone; the same command continues the run")
    if age > _MISSED_HEARTBEATS * owner.heartbeat_seconds:
        return _of(owner, age, "stalled", f"no heartbeat of {process} for {age:.0f} s")
    return _of(owner, age, "running", process)


def _of(owner: Owner, age: float, state: State, detail: str) -> Liveness:
    return Liveness(state, detail, owner.host, owner.pid, round(age, 1))


def _is_gone(owner: Owner) -> bool:
    """Return whether the owner is a process of this machine that has ended."""
    here = (socket.gethostname(), proctree.namespace())
    return (owner.host, owner.pid_namespace) == here and not proctree.is_alive(
        owner.pid, owner.process_start
    )


class LiveRun:
    """The state of a run so far. Each `refresh` reads only the new lines of the journal.

    Any thread may call `refresh`. A reader of the state holds `lock`.

    Attributes:
        problem: The damage or the missing record that the last `refresh` found; else empty.
        generation: The number of states; a replaced journal begins a new one.
        weight: The bytes of the journal that were read.
    """

    def __init__(self, run_dir: Path, name: str) -> None:
        self.run_dir = run_dir
        self.problem = ""
        self.lock = threading.RLock()
        self.generation = 0
        self.weight = 0
        self._name = name
        self._epoch = 0
        self._signature: Signature | None = None

    def is_current(self) -> bool:
        """Return whether the journal is unchanged since the last `refresh`; costs one `stat`."""
        return self._signature is not None and self._read_signature() == self._signature

    def refresh(self) -> Self:
        """Read the new records. On damage, set `problem` and keep the readable part."""
        with self.lock:
            found, before = self._read_signature(), self._signature
            if found == before:
                return self
            if before is None or found[0] != before[0] or found[1] < self.weight:
                self.generation += 1
                self.weight = self._epoch = 0
                self._clear()
            try:
                path = run_files.resolve(self.run_dir, self._name)
                for line in journal.read(path, self.weight, self._epoch) if path else ():
                    self._add(line)
                    self.weight, self._epoch = line.end, line.epoch
                self.problem = self._find_problem(path)
            except (StorageError, OSError, msgspec.DecodeError, KeyError) as error:
                self.problem = str(error)
            self._signature = found
        return self

    def _read_signature(self) -> Signature:
        return signature(self.run_dir / self._name)

    def _clear(self) -> None:
        """Forget the state: another journal begins."""
        raise NotImplementedError

    def _add(self, line: journal.Line) -> None:
        """Change the state by a record."""
        raise NotImplementedError

    def _find_problem(self, path: Path | None) -> str:
        """Return the problem of a journal that could be read. `path` is None without a journal."""
        return ""


class RunCache(Generic[T]):
    """The runs that were used last. The least recently used ones are dropped.

    Args:
        make: Returns the object to keep for a run.
        weigh: Returns the weight of such an object; it may grow.
        most: The most weight of all objects together. One object is always kept.
    """

    def __init__(self, make: Callable[[RunRef], T], weigh: Callable[[T], int], most: int) -> None:
        self._make = make
        self._weigh = weigh
        self._most = most
        self._lock = threading.Lock()
        self._runs: OrderedDict[str, T] = OrderedDict()

    def get(self, run: RunRef) -> T:
        """Return the object of a run, and make it if it is missing."""
        with self._lock:
            found = self._runs.pop(run.key, None) or self._make(run)
            self._runs[run.key] = found
            return found

    def find(self, run: RunRef) -> T | None:
        """Return the object of a run, or None."""
        with self._lock:
            return self._runs.get(run.key)

    def weight(self) -> int:
        """Return the weight of all objects."""
        with self._lock:
            return sum(map(self._weigh, self._runs.values()))

    def shrink(self) -> None:
        """Drop the objects beyond the limit."""
        with self._lock:
            weight = sum(map(self._weigh, self._runs.values()))
            while weight > self._most and len(self._runs) > 1:
                _, dropped = self._runs.popitem(last=False)
                weight -= self._weigh(dropped)
