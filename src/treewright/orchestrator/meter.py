"""The CPU time of the Lean processes that an attempt used, whoever ended it and how."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_AFTER_COMMAND = 2  # fields of /proc/<pid>/stat up to the command, which may contain spaces
_UTIME, _STIME = 13 - _AFTER_COMMAND, 14 - _AFTER_COMMAND


class Meter:
    """Adds up what was used while it was current."""

    def __init__(self) -> None:
        self.cpu_seconds = 0.0


current_meter: ContextVar[Meter | None] = ContextVar("current_meter", default=None)


def cpu_seconds(pid: int | None) -> float:
    """User and system time of a process so far; 0 where it cannot be known."""
    if pid is None:
        return 0.0
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    fields = text.rpartition(")")[2].split()
    return (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS


@contextlib.contextmanager
def metered(pid: int | None) -> Iterator[None]:
    """Counts what a process uses within the block on the meter of the current task."""
    meter = current_meter.get()
    before = cpu_seconds(pid)
    try:
        yield
    finally:
        if meter is not None:
            meter.cpu_seconds += max(0.0, cpu_seconds(pid) - before)
