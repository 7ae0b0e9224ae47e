"""Finding and ending every process that descends from one we started.

A process group is not enough: a grandchild may call setsid, or ignore SIGTERM. So every child gets
a marker in its environment, which its descendants inherit whatever session they move to. Where
Treewright runs in a command of another Treewright, the outer markers stand before its own: whoever
ends the outer command ends the inner ones too.

On Linux processes are found through /proc, read by hand: this happens after every command, psutil
takes four times as long, and it misses a process that is just becoming its program. The start time
of a process is read there too, in ticks since the machine started: psutil adds the time of that
start, which changes whenever the clock is set, and a living owner of a lease would be taken for a
dead one. Elsewhere psutil does both.

Windows has neither process groups nor signals that ask: there a command is ended at once, by its
children and by the marker.

Run as a script this file is the watchdog: it reads `+group marker cgroup` and `-group` lines from
stdin, and before a process is started `?marker cgroup`, later `!marker`. When stdin ends
because its parent was killed, it ends what is still registered. It imports only the standard
library on Linux so that it starts at once.
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
"""On Windows any signal ends a process at once."""
_HAS_GROUPS = hasattr(os, "killpg")
_CHUNK = 1 << 16
_POLL_SECONDS = 0.02
_KILL_PATIENCE_SECONDS = 5.0
_EXEC_PATIENCE_SECONDS = 1.0
_STATE, _STARTED, _MEMORY, _ENV_END = 0, 19, 20, 48
"""Fields of /proc/PID/stat, counted from the one behind the name."""


def start_time(pid: int) -> str:
    """When a process started; with the pid it names a process for ever. Empty if there is none."""
    if HAS_PROC:
        fields = _stat(pid)
        return fields[_STARTED].decode() if fields else ""
    import psutil

    try:
        return repr(psutil.Process(pid).create_time())
    except psutil.Error:
        return ""


def is_alive(pid: int, started: str) -> bool:
    """Whether that very process still runs (a zombie does not)."""
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
    except psutil.Error:  # it is there, and belongs to another user
        return True


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the name; none if there is no such process."""
    return (_read(pid, "stat") or b"").rpartition(b")")[2].split()


def boot_id() -> str:
    """Return the name of this start of the machine; empty where the system does not say."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def namespace() -> str:
    """Names the set of processes in which our ids mean something: a container has its own, a
    boot ends all. Empty where the system does not say."""
    if not HAS_PROC:
        return ""
    try:
        return f"{boot_id()}:{(_PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return ""


def with_marker(environment: Mapping[str, str], marker: str) -> dict[str, str]:
    """An environment for a process that is to be found by this marker, and by those of the
    commands that we run in ourselves."""
    outer = os.environ.get(MARKER, "")
    return {**environment, MARKER: f"{outer} {marker}" if outer else marker}


def without_marker() -> dict[str, str]:
    """Our environment for one that outlives us, because it ends what we leave."""
    return {name: value for name, value in os.environ.items() if name != MARKER}


def marked(marker: str, *, prefix: bool = False) -> list[int]:
    """Living processes of this user whose environment carries the marker."""
    wanted = marker.encode()
    end = b"" if prefix else rb"(?=[ \0]|\Z)"
    name = MARKER.encode()
    carries = re.compile(rb"(?:\A|\0)%b=(?:[^\0]* )?%b%b" % (name, re.escape(wanted), end))
    if not HAS_PROC:
        return _marked_by_psutil(carries)
    found = []
    for pid, environment in _of_all("environ"):
        said = environment or _late_environment(pid)
        if wanted in said and carries.search(said) and _stat(pid)[:1] not in ([b"Z"], [b"X"], []):
            found.append(pid)
    return sorted(set(found) - {os.getpid()})


def _marked_by_psutil(carries: re.Pattern[bytes]) -> list[int]:
    import psutil

    found = []
    with contextlib.suppress(OSError):  # a Linux without /proc
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):  # of another user, or gone
                said = os.fsencode(f"{MARKER}={process.environ().get(MARKER, '')}")
                if carries.search(said) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
    return sorted(set(found) - {os.getpid()})


def _late_environment(pid: int) -> bytes:
    """Of a process that seems to have none: one that is just becoming its program has not got it
    yet, and the pipe of the watchdog is closed before that."""
    deadline = time.monotonic() + _EXEC_PATIENCE_SECONDS
    while _is_becoming_its_program(pid) and time.monotonic() < deadline:
        os.sched_yield()
    return _read(pid, "environ") or b""


def _is_becoming_its_program(pid: int) -> bool:
    """Whether it has memory, and no place for an environment in it."""
    fields = _stat(pid)
    return len(fields) > _ENV_END and fields[_ENV_END] == b"0" != fields[_MEMORY]


def _of_all(name: str) -> Iterator[tuple[int, bytes]]:
    """What the system says of every process that may be looked into."""
    for process in os.listdir(_PROC):  # noqa: PTH208
        if process.isdecimal() and (said := _read(int(process), name)) is not None:
            yield int(process), said


def _read(pid: int, name: str) -> bytes | None:
    """Asked for whenever a command has ended, of all processes, and so without `Path` and files,
    which take longer than the system."""
    try:
        fd = os.open(f"{_PROC}/{pid}/{name}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return b"".join(iter(lambda: os.read(fd, _CHUNK), b""))
        finally:
            os.close(fd)
    except OSError:
        return None


def group_is_alive(group: int) -> bool:
    """Whether a process of the group still runs (a zombie that nobody waited for does not)."""
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
    """A process and what it started, where there are no groups; none once it has ended: what is
    left of its children is found by the marker."""
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
    """Asks the whole tree to end, and after the grace period, or once in a hurry, makes it. Windows
    has no way to ask."""
    if _HAS_GROUPS and grace_seconds > 0 and not hurry():
        _signal(group, marker, signal.SIGTERM)
        deadline = time.monotonic() + grace_seconds
        while time.monotonic() < deadline and not hurry():
            if not group_is_alive(group) and not marked(marker):
                return
            time.sleep(_POLL_SECONDS)
    kill(group, marker)


def kill(group: int | None, marker: str) -> None:
    """Kills until nothing is left: a process may fork between the look and the signal."""
    deadline = time.monotonic() + _KILL_PATIENCE_SECONDS
    while True:
        if not _signal(group, marker, _KILL) or time.monotonic() > deadline:
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
        stop = [signal.SIGSTOP] if hasattr(signal, "SIGSTOP") else []
        for number in (*stop, _KILL):
            for pid in alive:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        killed += alive
        time.sleep(_POLL_SECONDS)
    return sorted(set(killed))


def _signal(group: int | None, marker: str, number: signal.Signals) -> list[int]:
    """Returns whom it found by the marker."""
    if group is not None:
        _signal_group(group, number)
    found = marked(marker)
    for pid in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return found


def _signal_group(group: int, number: signal.Signals) -> None:
    """Where there are no groups, to the first process and what it started."""
    if _HAS_GROUPS:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)
        return
    for pid in _descendants(group):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def kill_group(group: int) -> None:
    """Ends the process group of a child, without a look for what left it."""
    _signal_group(group, _KILL)


def _watch() -> None:
    """The watchdog's main loop; see the head of this file."""
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
    """Ends what a dead owner left of one command."""
    if cgroup:
        with contextlib.suppress(OSError):
            (Path(cgroup) / "cgroup.kill").write_text("1")
    kill(group, marker)
    deadline = time.monotonic() + _KILL_PATIENCE_SECONDS
    while cgroup and Path(cgroup).is_dir() and time.monotonic() < deadline:
        try:
            Path(cgroup).rmdir()
        except OSError:  # the killed are still in it
            time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    _watch()
