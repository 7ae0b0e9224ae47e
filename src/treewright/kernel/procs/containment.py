"""Limits on a command and all its descendants: a cgroup, or rlimits where there is none.

A process cannot leave a cgroup (version 2, writable, with `cgroup.kill`), neither by setsid nor by
clearing its environment. Without one, the process group and the marker of `proctree` are used.
Memory is limited by the cgroup if it has the memory controller, else by RLIMIT_AS for each process;
file size always by RLIMIT_FSIZE. The child enters the cgroup through a line of shell before it
becomes the command, so it cannot escape in between.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treewright.kernel.operating_system import require_posix
from treewright.kernel.procs.proctree import HAS_PROC

_MEGABYTE = 1 << 20
_EMPTY_PATIENCE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on a command; None is no limit."""

    memory_mb: int | None = None
    file_mb: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Container:
    """The limits of one command, and its cgroup, which is None if there is no writable one."""

    cgroup: Path | None
    limits: Limits

    def wrap(self, command: Sequence[str]) -> list[str]:
        """Return the command after a line of shell that enters the cgroup and sets the limits."""
        steps = []
        if self.cgroup is not None:
            steps.append(f"echo 0 > {shlex.quote(str(self.cgroup / 'cgroup.procs'))}")
        if self.limits.file_mb is not None:
            steps.append(f"ulimit -f {self.limits.file_mb * _MEGABYTE // 512}")
        if self.limits.memory_mb is not None and not self._limits_memory():
            steps.append(f"ulimit -v {self.limits.memory_mb * 1024}")
        if not steps:
            return list(command)
        return ["/bin/sh", "-c", " && ".join([*steps, 'exec "$@"']), "sh", *command]

    def kill(self) -> None:
        """Kill every process in the cgroup."""
        if self.cgroup is not None:
            with contextlib.suppress(OSError):
                (self.cgroup / "cgroup.kill").write_text("1")

    def _limits_memory(self) -> bool:
        return self.cgroup is not None and (self.cgroup / "memory.max").exists()


def plan_cgroup() -> Path | None:
    """Return the path for the cgroup of one command; None if none can be created."""
    parent = writable_parent()
    return parent and parent / f"treewright-{os.getpid()}-{secrets.token_hex(6)}"


@contextlib.contextmanager
def contain(limits: Limits, cgroup: Path | None) -> Iterator[Container]:
    """Create the container of one command; kill everything in it at the end of the block."""
    if limits != NO_LIMITS:
        require_posix("a limit on the memory or the files of a command")
    try:
        if cgroup is not None:
            cgroup.mkdir()
    except OSError:
        cgroup = None
    if cgroup is None:
        yield Container(None, limits)
        return
    container = Container(cgroup, limits)
    try:
        if limits.memory_mb is not None and (cgroup / "memory.max").exists():
            (cgroup / "memory.max").write_text(str(limits.memory_mb * _MEGABYTE))
        yield container
    finally:
        container.kill()
        _remove(cgroup)


@functools.cache
def writable_parent() -> Path | None:
    """Return the cgroup of this process, if it can create others below it."""
    if not HAS_PROC:
        return None
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        own = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    roots = [line.split()[4] for line in mounts if " - cgroup2 " in line]
    paths = [line.removeprefix("0::").lstrip("/") for line in own if line.startswith("0::")]
    if not roots or not paths:
        return None
    parent = Path(roots[0]) / paths[0]
    probe = parent / f"treewright-probe-{os.getpid()}"
    try:
        probe.mkdir()
        usable = (probe / "cgroup.kill").exists() and os.access(probe / "cgroup.procs", os.W_OK)
        probe.rmdir()
    except OSError:
        return None
    return parent if usable else None


def _remove(cgroup: Path) -> None:
    deadline = time.monotonic() + _EMPTY_PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            try:
                cgroup.rmdir()
            except OSError:
                time.sleep(0.005)
                continue
        return
