"""Tell from the lease of a run whether a process is working on it. The lease is only read."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

import msgspec

from treewright.kernel.errors import StorageError
from treewright.kernel.procs import proctree
from treewright.kernel.storage.lease import Owner, current_owner

State = Literal["running", "stalled", "paused", "stopped", "damaged"]
_MISSED_HEARTBEATS = 3


class Liveness(msgspec.Struct, frozen=True):
    """The state of a run. `detail` explains it in words; `heartbeat_age` is in seconds."""

    state: State
    detail: str
    host: str = ""
    pid: int | None = None
    heartbeat_age: float | None = None


def read(lease_dir: Path, stop_reason: str | None) -> Liveness:
    """Return the state of a run.

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
