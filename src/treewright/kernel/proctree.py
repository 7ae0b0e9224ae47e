"""Finding and ending every process that descends from one we started.

A process group is not enough: a grandchild may call setsid, or ignore SIGTERM.
So every child gets a marker in its environment, which its descendants inherit
whatever session they move to; on Linux they are found through /proc. Elsewhere
only the process group is reached.

Run as a script this file is the watchdog: it reads `+group marker cgroup` and `-group`
lines from stdin, and before a process is started `?marker`, later `!marker`. When stdin ends
because its parent was killed, it ends what is still registered. It imports only the standard
library so that it starts at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MARKER = "TREEWRIGHT_PROCESS"
_PROC = Path("/proc")
_CHUNK = 1 << 16
_POLL_SECONDS = 0.02
_KILL_PATIENCE_SECONDS = 5.0


def start_time(pid: int) -> str:
    """When a process started, in the kernel's ticks; with the pid it names a process for ever."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]


def is_alive(pid: int, started: str) -> bool:
    """Whether that very process still runs (a zombie does not)."""
    if not _PROC.is_dir():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
    return bool(started) and start_time(pid) == started and _state(pid) not in ("Z", "X", "")


def namespace() -> str:
    """Names the set of processes in which our ids mean something: a container has its own, a
    boot ends all. Empty where the system does not say."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}:{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def _state(pid: int) -> str:
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[0]


def marked(marker: str, *, prefix: bool = False) -> list[int]:
    """Living processes of this user whose environment carries the marker."""
    if not _PROC.is_dir():
        return []
    needle = f"\0{MARKER}={marker}".encode() + (b"" if prefix else b"\0")
    found = []
    for pid, environment in _of_all("environ"):
        if needle in b"\0" + environment + b"\0" and _state(pid) not in ("Z", "X", ""):
            found.append(pid)
    return sorted(set(found) - {os.getpid()})


def _of_all(name: str) -> Iterator[tuple[int, bytes]]:
    """What the system says of every process that may be looked into. Asked for whenever a command
    has ended, and so without `Path` and files, which take longer than the system."""
    for process in os.listdir(_PROC):  # noqa: PTH208
        if not process.isdecimal():
            continue
        try:
            fd = os.open(f"{_PROC}/{process}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                said = b"".join(iter(lambda fd=fd: os.read(fd, _CHUNK), b""))
            finally:
                os.close(fd)
        except OSError:
            continue
        yield int(process), said


def group_is_alive(group: int) -> bool:
    """Whether a process of the group still runs (a zombie that nobody waited for does not)."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not _PROC.is_dir():
        return True
    wanted = str(group).encode()
    for _, stat in _of_all("stat"):
        state, _, its_group, *_ = stat.rpartition(b")")[2].split()
        if its_group == wanted and state not in (b"Z", b"X"):
            return True
    return False


def end(
    group: int, marker: str, grace_seconds: float, hurry: Callable[[], bool] = lambda: False
) -> None:
    """Asks the whole tree to end, and after the grace period, or once in a hurry, makes it."""
    if grace_seconds > 0 and not hurry():
        _signal(group, marker, signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        while time.monotonic() < deadline and not hurry():
            if not group_is_alive(group) and not marked(marker):
                return
            time.sleep(_POLL_SECONDS)
    kill(group, marker)


def kill(group: int | None, marker: str) -> None:
    """SIGKILL until nothing is left: a process may fork between the look and the signal."""
    deadline = time.monotonic() + _KILL_PATIENCE_SECONDS
    while True:
        if not _signal(group, marker, signal.SIGKILL) or time.monotonic() > deadline:
            return
        time.sleep(_POLL_SECONDS)


def kill_marked(marker_prefix: str, *, spare: str) -> list[int]:
    """Ends processes that earlier owners left behind, but not those marked with the prefix
    `spare`; returns their ids."""
    killed: list[int] = []
    deadline = time.monotonic() + _KILL_PATIENCE_SECONDS
    while time.monotonic() < deadline:
        alive = set(marked(marker_prefix, prefix=True))
        if alive:
            alive -= set(marked(spare, prefix=True))
        if not alive:
            break
        # All are stopped first: a shell that lives to see its child killed would say so in a log.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        killed += alive
        time.sleep(_POLL_SECONDS)
    return sorted(set(killed))


def _signal(group: int | None, marker: str, number: signal.Signals) -> list[int]:
    """Returns whom it found by the marker."""
    if group is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
    found = marked(marker)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return found


def _watch() -> None:
    """The watchdog's main loop; see the head of this file."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    registered: dict[int, tuple[str, str]] = {}
    expected: set[str] = set()
    for line in sys.stdin:
        if line[0] in "?!":
            (expected.add if line[0] == "?" else expected.discard)(line[1:].rstrip("\n"))
            continue
        group, marker, cgroup = (*line[1:].rstrip("\n").split(" ", 2), "", "")[:3]
        if line[0] == "+":
            registered[int(group)] = (marker, cgroup)
        else:
            registered.pop(int(group), None)
    for group, (marker, cgroup) in registered.items():
        if cgroup:
            with contextlib.suppress(OSError):
                (Path(cgroup) / "cgroup.kill").write_text("1")
        kill(group, marker)
        if cgroup:
            with contextlib.suppress(OSError):
                Path(cgroup).rmdir()
    for marker in expected:
        kill(None, marker)


if __name__ == "__main__":
    _watch()
