"""Waiting for something to become true, and looking at processes from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from treewright.kernel.procs import proctree

T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float = 120.0, what: str = "") -> T:
    """Returns the first true answer; fails the test if there is none in time."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        time.sleep(0.01)


class HeldClock:
    """In place of `time` in a module: stands still until something has happened, and goes on from
    there. So a time limit begins when that which it is to end is there, however busy the machine.
    """

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
    """What is in a file, nothing if there is none."""
    return path.read_text() if path.exists() else ""


def gone(pid: int) -> bool:
    """Whether no process runs under this id (a zombie does not run)."""
    return not proctree.is_alive(pid, proctree.start_time(pid))


def cpu_seconds(pid: int) -> float:
    """The processor time of a process so far: what it did, however busy the machine is."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
