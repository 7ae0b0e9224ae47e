"""Waiting for something to become true, and looking at processes from outside."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from treewright.kernel import proctree

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


def gone(pid: int) -> bool:
    """Whether no process runs under this id (a zombie does not run)."""
    return not proctree.is_alive(pid, proctree.start_time(pid))


def cpu_seconds(pid: int) -> float:
    """The processor time of a process so far: what it did, however busy the machine is."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
