"""Functions that wait for a condition and inspect processes from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from treewright.kernel.procs import proctree

T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float = 120.0, what: str = "") -> T:
    """Return the first true answer; fail the test if there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        time.sleep(0.01)


class HeldClock:
    """A replacement of `time` in a module that stands still until an event.

    A time limit then begins when the thing that it ends exists, on a busy machine too."""

    sleep = staticmethod(time.sleep)

    def __init__(self, happened: Callable[[], object]) -> None:
        self._happened = happened
        self._held_at = time.monotonic()
        self._since: float | None = None

    def monotonic(self) -> float:
        now = time.monotonic()
        if self._since is None and self._happened():
            self._since = now
        return self._held_at if self._since is None else self._held_at + now - self._since


def said(path: Path) -> str:
    """Return the text of a file, or an empty text if there is none."""
    return path.read_text() if path.exists() else ""


def gone(pid: int) -> bool:
    """Return whether no process runs under this id (a zombie does not run)."""
    return not proctree.is_alive(pid, proctree.start_time(pid))


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process so far, which does not depend on the load."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
