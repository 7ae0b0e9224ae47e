"""The lease: one owner of a run at a time, with heartbeat, takeover and fencing.

`lease/<epoch>.json` is created exclusively; the highest epoch is that of the owner. A process takes
the run over by creating the next epoch, which two processes cannot both do. The owner touches its
own file as a heartbeat, through a descriptor, so an owner that was replaced touches no file that
counts. Before every durable write the owner checks that the next epoch does not exist (one `stat`).
A line that is written after the check and after a takeover has an old epoch, and every reader
ignores it. Epoch files are never removed: a process that slept must find its successor.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Literal

import msgspec

from treewright.kernel.clock import timestamp
from treewright.kernel.errors import LeaseLost, LockActive, StorageError
from treewright.kernel.operating_system import BINARY
from treewright.kernel.procs import proctree
from treewright.kernel.storage import atomic
from treewright.kernel.text import jsontext

DEFAULT_STALE_SECONDS = 120.0
_HEARTBEATS_PER_STALE_PERIOD = 6
_LONGEST_HEARTBEAT_SECONDS = 10.0
_MISSED_HEARTBEATS = 3
"""An owner is stale only after this many missed heartbeats, even with a shorter limit."""

Takeover = Literal["none", "released", "dead", "stale", "forced"]


class Owner(msgspec.Struct, frozen=True):
    """The owner of an epoch. `released_at` is set by an owner that ended in order."""

    token: str
    pid: int
    process_start: str
    host: str
    acquired_at: str
    takeover: Takeover = "none"
    released_at: str | None = None
    heartbeat_seconds: float = _LONGEST_HEARTBEAT_SECONDS
    pid_namespace: str = ""
    """The set of processes in which `pid` is unique; see `proctree.namespace`."""


class Lease:
    """Ownership of a run directory, from `acquire` to `release`."""

    def __init__(self, directory: Path, epoch: int, owner: Owner) -> None:
        self.epoch = epoch
        self.owner = owner
        self._directory = directory
        self._next = _path(directory, epoch + 1)
        self._next_name = str(self._next)
        path = _path(directory, epoch)
        self._fd = os.open(path, os.O_RDONLY | BINARY)
        # Windows cannot set the times of an open file; its name is of this epoch alone.
        self._heartbeat = self._fd if os.utime in os.supports_fd else path
        self._stop = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="lease-heartbeat", daemon=True)
        self._heart.start()

    @classmethod
    def acquire(
        cls,
        directory: Path,
        *,
        stale_seconds: float = DEFAULT_STALE_SECONDS,
        force: bool = False,
        after: int = 0,
    ) -> Lease:
        """Become the owner of a run.

        Args:
            directory: The directory of the lease files.
            stale_seconds: The age of a heartbeat after which its owner counts as dead.
            force: Take over from an owner that is alive.
            after: An epoch that was used before, in case that its file was deleted.

        Raises:
            LockActive: Another process owns the run; the message names it.
        """
        atomic.make_directory(directory)
        while True:
            latest = latest_epoch(directory)
            takeover = _may_take(directory, latest, stale_seconds, force) if latest else "none"
            epoch = max(latest, after)
            owner = Owner(
                token=secrets.token_hex(8),
                pid=os.getpid(),
                process_start=proctree.start_time(os.getpid()),
                host=socket.gethostname(),
                acquired_at=timestamp(),
                takeover=takeover,
                heartbeat_seconds=min(
                    _LONGEST_HEARTBEAT_SECONDS, stale_seconds / _HEARTBEATS_PER_STALE_PERIOD
                ),
                pid_namespace=proctree.namespace(),
            )
            if atomic.create_exclusive(_path(directory, epoch + 1), msgspec.json.encode(owner)):
                atomic.sweep_temporaries(directory)
                return cls(directory, epoch + 1, owner)

    def check(self) -> None:
        """Raise LeaseLost if another process has taken the run over."""
        if os.path.exists(self._next_name):  # noqa: PTH110 - called before each line of a journal
            raise _lost(self.epoch)

    def is_in_place(self) -> bool:
        """Return whether the lease file is still the one that this process created."""
        path = _path(self._directory, self.epoch)
        try:
            return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(self._fd))
        except OSError:
            return False

    def release(self) -> None:
        """Release the run, so that the next owner need not wait. A second call does nothing."""
        if self._stop.is_set():
            return  # the number of the closed descriptor may belong to another file
        self._stop.set()
        self._heart.join()
        os.close(self._fd)
        if not self._next.exists():
            released = msgspec.structs.replace(self.owner, released_at=timestamp())
            atomic.write_bytes(_path(self._directory, self.epoch), msgspec.json.encode(released))

    def _beat(self) -> None:
        while not self._stop.wait(self.owner.heartbeat_seconds):
            with contextlib.suppress(OSError):  # a missed heartbeat must not end the run
                os.utime(self._heartbeat)


def check_epoch(directory: Path, epoch: int) -> None:
    """Raise LeaseLost if the owner of that epoch has a successor."""
    if _path(directory, epoch + 1).exists():
        raise _lost(epoch)


def _lost(epoch: int) -> LeaseLost:
    return LeaseLost(
        f"this process lost the run to another one (epoch {epoch + 1}); "
        "it stops here and has changed nothing since"
    )


def latest_epoch(directory: Path) -> int:
    """Return the epoch of the present or last owner; 0 if there was none."""
    found = (path.stem for path in directory.glob("[0-9]*.json"))
    return max((int(stem) for stem in found if stem.isdecimal()), default=0)


def current_owner(directory: Path) -> tuple[Owner, float] | None:
    """Return the present or last owner, and the seconds since its last heartbeat."""
    epoch = latest_epoch(directory)
    if not epoch:
        return None
    path = _path(directory, epoch)
    owner = _read(path)
    return owner, max(0.0, time.time() - path.stat().st_mtime)


def _may_take(directory: Path, epoch: int, stale_seconds: float, force: bool) -> Takeover:
    path = _path(directory, epoch)
    owner = _read(path)
    if owner.released_at is not None:
        return "released"
    if _is_dead(owner):
        return "dead"
    stale_seconds = max(stale_seconds, _MISSED_HEARTBEATS * owner.heartbeat_seconds)
    age = _filesystem_now(directory) - path.stat().st_mtime
    if age > stale_seconds:
        return "stale"
    if force:
        return "forced"
    raise LockActive(
        f"Run lock is active (not stale): pid {owner.pid} on {owner.host}, heartbeat "
        f"{max(age, 0):.0f} s ago. Wait for it to end or to become stale "
        f"({stale_seconds:.0f} s), or use --force."
    )


def _is_dead(owner: Owner) -> bool:
    """Return whether the owner is a process of this machine that has ended.

    Of owners elsewhere only the heartbeat is known.
    """
    here = (socket.gethostname(), proctree.namespace())
    return (owner.host, owner.pid_namespace) == here and not proctree.is_alive(
        owner.pid, owner.process_start
    )


def _read(path: Path) -> Owner:
    try:
        return jsontext.decode(path.read_bytes(), type=Owner)
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.DecodeError:
        raise StorageError(
            f"{path} is damaged; delete it if no other process works on the run, then retry"
        ) from None


def _filesystem_now(directory: Path) -> float:
    """Return the time of the file system's clock, which also stamps the heartbeats."""
    with atomic.storage_errors(directory), tempfile.TemporaryFile(dir=directory) as probe:
        return os.fstat(probe.fileno()).st_mtime


def _path(directory: Path, epoch: int) -> Path:
    return directory / f"{epoch:06d}.json"
