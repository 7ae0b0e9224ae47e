"""The watchdog: a process that ends the commands of this process if this one is killed."""

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
    """The watchdog of this process, for all of its threads. It is started at its first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: dict[str, str] = {}

    @contextlib.contextmanager
    def expecting(self, marker: str, cgroup: Path | None = None) -> Iterator[None]:
        """Guard a command that is about to start, by its marker: its group is not known yet."""
        with self._registered(marker, f"?{marker} {cgroup or ''}\n", f"!{marker}\n"):
            yield

    @contextlib.contextmanager
    def guarding(self, group: int, marker: str, cgroup: Path | None = None) -> Iterator[None]:
        """Guard a running command: its group, marker and cgroup are killed if this process is."""
        name = str(group)
        with self._registered(name, f"+{group} {marker} {cgroup or ''}\n", f"-{group}\n"):
            yield

    def close(self) -> None:
        """End the watchdog; for tests that count processes."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
                self._process.wait()
            self._process = None

    @contextlib.contextmanager
    def _registered(self, name: str, begin: str, end: str) -> Iterator[None]:
        try:
            # Remembered before it is sent, for a watchdog that is started again meanwhile.
            with self._lock:
                self._lines[name] = begin
            self._send(begin)
            yield
        finally:
            with self._lock:
                is_registered = self._lines.pop(name, None) is not None  # not in a forked process
            if is_registered:
                with contextlib.suppress(OSError):
                    self._send(end)

    def _send(self, line: str) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            try:
                self._write(line)
            except OSError:  # it died after the check
                self._start()
                self._write(line)

    def _start(self) -> None:
        """Start a watchdog and send it all commands that run."""
        quick = ["-S"] if proctree.HAS_PROC else []  # without /proc it needs psutil
        self._process = subprocess.Popen(
            [sys.executable, "-I", *quick, proctree.__file__],
            bufsize=0,
            env=proctree.without_marker(),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if self._lines:
            self._write("".join(self._lines.values()))

    def _write(self, lines: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        data = memoryview(lines.encode())
        while data:
            data = data[self._process.stdin.write(data) :]

    def forget(self) -> None:
        """Forget the watchdog in a forked process: it belongs to the parent.

        It waits until every copy of its pipe is closed.
        """
        self._lock = threading.Lock()
        self._lines = {}
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.returncode = 0  # not our child
        self._process = None


watchdog = Watchdog()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=watchdog.forget)
