"""A helper process that ends our children should we be killed ourselves."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from treewright.kernel.procs import proctree


class Watchdog:
    """Started on first use; one serves every thread of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._told: dict[str, str] = {}

    @contextlib.contextmanager
    def expecting(self, marker: str, cgroup: Path | None = None) -> Iterator[None]:
        """The same for what will have that marker: a child runs before its group is known here."""
        with self._holding(marker, f"?{marker} {cgroup or ''}\n", f"!{marker}\n"):
            yield

    @contextlib.contextmanager
    def guarding(self, group: int, marker: str, cgroup: Path | None = None) -> Iterator[None]:
        """While the block runs, our death is the death of that group, marker and cgroup."""
        name = str(group)
        with self._holding(name, f"+{group} {marker} {cgroup or ''}\n", f"-{group}\n"):
            yield

    def close(self) -> None:
        """Ends the helper; for tests that count processes."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
                self._process.wait()
            self._process = None

    @contextlib.contextmanager
    def _holding(self, name: str, begins: str, ends: str) -> Iterator[None]:
        try:
            # Noted first: one that is started anew meanwhile, and who is interrupted, needs it.
            with self._lock:
                self._told[name] = begins
            self._tell(begins)
            yield
        finally:
            with self._lock:
                still_held = self._told.pop(name, None) is not None  # not so in a fork
            if still_held:
                with contextlib.suppress(OSError):
                    self._tell(ends)

    def _tell(self, line: str) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            try:
                self._write(line)
            except OSError:  # it has died since we looked
                self._start()
                self._write(line)

    def _start(self) -> None:
        """One that died guards nothing any more, so the next is told all that still runs."""
        quick = ["-S"] if proctree.HAS_PROC else []  # elsewhere it needs psutil
        self._process = subprocess.Popen(
            [sys.executable, "-I", *quick, proctree.__file__],
            bufsize=0,
            env=proctree.without_marker(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if self._told:
            self._write("".join(self._told.values()))

    def _write(self, lines: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        data = memoryview(lines.encode())
        while data:
            data = data[self._process.stdin.write(data) :]

    def forget(self) -> None:
        """In a fork: what was told is our parent's, and so is the helper, which waits until
        nobody holds its pipe any more."""
        self._lock = threading.Lock()
        self._told = {}
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.returncode = 0  # not our child
        self._process = None


watchdog = Watchdog()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=watchdog.forget)
