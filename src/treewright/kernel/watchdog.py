"""A helper process that ends our children should we be killed ourselves."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from treewright.kernel import proctree


class Watchdog:
    """Started on first use; one serves every thread of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def expecting(self, marker: str) -> Iterator[None]:
        """The same for what will have that marker: a child runs before its group is known here."""
        self._tell(f"?{marker}\n")
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                self._tell(f"!{marker}\n")

    @contextlib.contextmanager
    def guarding(self, group: int, marker: str, cgroup: Path | None = None) -> Iterator[None]:
        """While the block runs, our death is the death of that group, marker and cgroup."""
        self._tell(f"+{group} {marker} {cgroup or ''}\n")
        try:
            yield
        finally:
            # A helper that died meanwhile guards nothing; a new one need not be told of this.
            with contextlib.suppress(OSError):
                self._tell(f"-{group}\n")

    def close(self) -> None:
        """Ends the helper; for tests that count processes."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
                self._process.wait()
            self._process = None

    def _tell(self, line: str) -> None:
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", proctree.__file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            assert self._process.stdin is not None
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()


watchdog = Watchdog()
