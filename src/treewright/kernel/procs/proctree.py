"""Finding and ending all descendants of a process.

A process group is not enough: a grandchild may call setsid, or ignore SIGTERM. So every command has
a marker in its environment, which its descendants inherit in any session. A Treewright that runs
inside a command of another Treewright keeps the outer markers before its own, so the end of the
outer command also ends the inner ones.

On Linux this module reads /proc directly, because it does so after every command: psutil takes four
times as long, and misses a process during its exec. The start time of a process is read there too,
in ticks since the start of the machine: psutil adds the time of that start, which changes when the
clock is set, so a living owner of a lease would seem dead. On other systems psutil does both.

Windows has no process groups and no signal that asks a process to end: a command is killed at once,
with its children and all processes that have the marker.

Run as a script, this file is the watchdog. It reads lines from stdin: `+group marker cgroup` and
`-group` register and remove a command, `?marker cgroup` and `!marker` a command that is about to
start. When its parent is killed, stdin ends, and it ends the commands that are registered. On Linux
it imports only the standard library, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

MARKER = "TREEWRIGHT_PROCESS"
_PROC = Path("/proc")
HAS_PROC = sys.platform == "linux" and (_PROC / "self/stat").is_file()
_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
"""On Windows every signal kills a process."""
_HAS_GROUPS = hasattr(os, "killpg")
_CHUNK = 1 << 16
_POLL_SECONDS = 0.02
_KILL_PATIENCE_SECONDS = 5.0
_EXEC_PATIENCE_SECONDS = 1.0
_STATE, _STARTED, _MEMORY, _ENV_END = 0, 19, 20, 48
"""Fields of /proc/PID/stat, counted from the one after the name."""


def start_time(pid: int) -> str:
    """Return the start time of a process; with the pid it is unique. Empty if there is none."""
    if HAS_PROC:
        fields = _stat(pid)
        return fields[_STARTED].decode() if fields else ""
    import psutil

    try:
        return repr(psutil.Process(pid).create_time())
    except psutil.Error:
        return ""


def is_alive(pid: int, started: str) -> bool:
    """Return whether the process with that pid and start time still runs. A zombie does not."""
    if HAS_PROC:
        fields = _stat(pid)
        return (
            bool(fields)
            and fields[_STARTED].decode() == started
            and fields[_STATE] not in (b"Z", b"X")
        )
    import psutil

    if not started:  # a Linux without /proc
        try:
            return psutil.pid_exists(pid)
        except OSError:
            return True
    try:
        process = psutil.Process(pid)
        return repr(process.create_time()) == started and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:  # it exists, and belongs to another user
        return True


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the name; none if there is no such process."""
    return (_read(pid, "stat") or b"").rpartition(b")")[2].split()


def boot_id() -> str:
    """Return the name of this start of the machine; empty where the system does not say."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def namespace() -> str:
    """Return the name of the set of processes in which a pid is unique.

    It differs between containers, and after a restart of the machine. It is empty on systems
    without /proc.
    """
    if not HAS_PROC:
        return ""
    try:
        return f"{boot_id()}:{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def with_marker(environment: Mapping[str, str], marker: str) -> dict[str, str]:
    """Return an environment with a marker, after the markers that this process inherited."""
    outer = os.environ.get(MARKER, "")
    return {**environment, MARKER: f"{outer} {marker}" if outer else marker}


def without_marker() -> dict[str, str]:
    """Return the environment of this process without markers, for the watchdog."""
    return {name: value for name, value in os.environ.items() if name != MARKER}


def marked(marker: str, *, prefix: bool = False) -> list[int]:
    """Return the living processes of this user with the marker in their environment."""
    wanted = marker.encode()
    end = b"" if prefix else rb"(?=[ \0]|\Z)"
    name = MARKER.encode()
    pattern = re.compile(rb"(?:\A|\0)%b=(?:[^\0]* )?%b%b" % (name, re.escape(wanted), end))
    if not HAS_PROC:
        return _marked_by_psutil(pattern)
    found = []
    for pid, environment in _of_all("environ"):
        environment = environment or _late_environment(pid)
        if (
            wanted in environment
            and pattern.search(environment)
            and _stat(pid)[:1] not in ([b"Z"], [b"X"], [])
        ):
            found.append(pid)
    return sorted(set(found) - {os.getpid()})


def _marked_by_psutil(pattern: re.Pattern[bytes]) -> list[int]:
    import psutil

    found = []
    with contextlib.suppress(OSError):  # a Linux without /proc
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # it belongs to another user, or has ended
                said = os.fsencode(f"{MARKER}={process.environ().get(MARKER, '')}")
                if pattern.search(said) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
    return sorted(set(found) - {os.getpid()})


def _late_environment(pid: int) -> bytes:
    """Return the environment of a process that has none yet, because it is inside an exec.

    The pipe of the watchdog closes before the environment is there.
    """
    deadline = time.monotonic() + _EXEC_PATIENCE_SECONDS
    while _is_inside_exec(pid) and time.monotonic() < deadline:
        os.sched_yield()
    return _read(pid, "environ") or b""


def _is_inside_exec(pid: int) -> bool:
    """Return whether a process has memory, but no environment in it."""
    fields = _stat(pid)
    return len(fields) > _ENV_END and fields[_ENV_END] == b"0" != fields[_MEMORY]


def _of_all(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield a file of /proc for every process that this user may read."""
    for process in os.listdir(_PROC):  # noqa: PTH208
        if process.isdecimal() and (said := _read(int(process), name)) is not None:
            yield int(process), said


def _read(pid: int, name: str) -> bytes | None:
    """Return a file of /proc; None if it cannot be read.

    It is read for all processes after every command, so it avoids the overhead of `Path`.
    """
    try:
        fd = os.open(f"{_PROC}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return b"".join(iter(lambda: os.read(fd, _CHUNK), b""))
        finally:
            os.close(fd)
    except OSError:
        return None


def group_is_alive(group: int) -> bool:
    """Return whether a process of the group still runs. A zombie does not."""
    if not _HAS_GROUPS:
        return bool(_descendants(group))
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not HAS_PROC:
        return True
    wanted = str(group).encode()
    for _, stat in _of_all("stat"):
        state, _, its_group, *_ = stat.rpartition(b")")[2].split()
        if its_group == wanted and state not in (b"Z", b"X"):
            return True
    return False


def _descendants(pid: int) -> list[int]:
    """Return a process and its descendants, for systems without groups.

    The list is empty after its end; the marker then finds the children that are left.
    """
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return []
        return [pid, *(child.pid for child in process.children(recursive=True))]
    except psutil.Error:
        return []


def end(
    group: int, marker: str, grace_seconds: float, hurry: Callable[[], bool] = lambda: False
) -> None:
    """Ask all descendants of a command to end; kill them after the grace period.

    Args:
        group: The process group of the command.
        marker: Its marker.
        grace_seconds: The grace period; 0 kills at once.
        hurry: Ends the grace period when it returns true.
    """
    if _HAS_GROUPS and grace_seconds > 0 and not hurry():
        _signal(group, marker, signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        while time.monotonic() < deadline and not hurry():
            if not group_is_alive(group) and not marked(marker):
                return
            time.sleep(_POLL_SECONDS)
    kill(group, marker)


def kill(group: int | None, marker: str) -> None:
    """Kill until no process is left: one may fork between the search and the signal."""
    deadline = time.monotonic() + _KILL_PATIENCE_SECONDS
    while True:
        if not _signal(group, marker, _KILL) or time.monotonic() > deadline:
            return
        time.sleep(_POLL_SECONDS)


def kill_marked(marker_prefix: str, *, spare: str) -> list[int]:
    """Kill processes of earlier owners, except those with the marker prefix `spare`.

    Returns:
        Their ids.
    """
    killed: list[int] = []
    deadline = time.monotonic() + _KILL_PATIENCE_SECONDS
    while time.monotonic() < deadline:
        alive = set(marked(marker_prefix, prefix=True))
        if alive:
            alive -= set(marked(spare, prefix=True))
        if not alive:
            break
        # All are stopped first: a shell that sees its child killed would write that to a log.
        stop = [signal.SIGSTOP] if hasattr(signal, "SIGSTOP") else []
        for number in (*stop, _KILL):
            for pid in alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        killed += alive
        time.sleep(_POLL_SECONDS)
    return sorted(set(killed))


def _signal(group: int | None, marker: str, number: signal.Signals) -> list[int]:
    """Send a signal to the group and to processes with the marker; return the latter."""
    if group is not None:
        _signal_group(group, number)
    found = marked(marker)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return found


def _signal_group(group: int, number: signal.Signals) -> None:
    """Send a signal to a group; without groups, to the process and its descendants."""
    if _HAS_GROUPS:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
        return
    for pid in _descendants(group):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_group(group: int) -> None:
    """Kill the process group of a child, but not processes that have left it."""
    _signal_group(group, _KILL)


def _watch() -> None:
    """Run the main loop of the watchdog; see the docstring of this module."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    registered: dict[int, tuple[str, str]] = {}
    expected: dict[str, str] = {}
    for line in sys.stdin:
        if line[0] in "?!":
            marker, cgroup = (*line[1:].rstrip("\n").split(" ", 1), "")[:2]
            if line[0] == "?":
                expected[marker] = cgroup
            else:
                expected.pop(marker, None)
            continue
        group, marker, cgroup = (*line[1:].rstrip("\n").split(" ", 2), "", "")[:3]
        if line[0] == "+":
            registered[int(group)] = (marker, cgroup)
        else:
            registered.pop(int(group), None)
    for group, (marker, cgroup) in registered.items():
        _end_left(group, marker, cgroup)
    for marker, cgroup in expected.items():
        _end_left(None, marker, cgroup)


def _end_left(group: int | None, marker: str, cgroup: str) -> None:
    """End the processes of one command after the death of its owner."""
    if cgroup:
        with contextlib.suppress(OSError):
            (Path(cgroup) / "cgroup.kill").write_text("1")
    kill(group, marker)
    deadline = time.monotonic() + _KILL_PATIENCE_SECONDS
    while cgroup and Path(cgroup).is_dir() and time.monotonic() < deadline:
        try:
            Path(cgroup).rmdir()
        except OSError:  # killed processes are still in it
            time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    _watch()
