"""Whether somebody works on a run, from its lease; nothing is taken and nothing is written."""

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
    """`detail` says it in words; `heartbeat_age` is in seconds."""

    state: State
    detail: str
    host: str = ""
    pid: int | None = None
    heartbeat_age: float | None = None


def read(lease_dir: Path, stop_reason: str | None) -> Liveness:
    """`stop_reason`, in words, is set if the run has come to its end."""
    try:
        found = current_owner(lease_dir)
    except (StorageError, OSError):
        found = None
    if found is None or found[0].released_at is not None:
        if stop_reason is not None:
            return Liveness("stopped", stop_reason)
        return Liveness("paused", "nobody works on it; the same command continues it")
    owner, age = found
    who = f"process {owner.pid} on {owner.host}"
    if _is_gone(owner):
        if stop_reason is not None:
            return Liveness("stopped", stop_reason)
        return _of(owner, age, "stalled", f"{who} is gone; the same command continues the run")
    if age > _MISSED_HEARTBEATS * owner.heartbeat_seconds:
        return _of(owner, age, "stalled", f"no heartbeat of {who} for {age:.0f} s")
    return _of(owner, age, "running", who)


def _of(owner: Owner, age: float, state: State, detail: str) -> Liveness:
    return Liveness(state, detail, owner.host, owner.pid, round(age, 1))


def _is_gone(owner: Owner) -> bool:
    """Only of a process on this machine is more known than its heartbeat."""
    here = (socket.gethostname(), proctree.namespace())
    return (owner.host, owner.pid_namespace) == here and not proctree.is_alive(
        owner.pid, owner.process_start
    )
