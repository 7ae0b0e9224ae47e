"""A process that another one of the user's started and gave us: as much of `Popen` as is needed."""

from __future__ import annotations

import os
import select
import subprocess
from typing import IO

from treewright.kernel.procs import proctree


class Adopted:
    """Not our child: how it ended is not known, only that it did."""

    def __init__(self, pid: int, stdin: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = os.fdopen(stdin, "wb", buffering=0)
        self._started = proctree.start_time(pid)

    def poll(self) -> int | None:
        if self.returncode is None and not proctree.is_alive(self.pid, self._started):
            self.returncode = -1
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended; raises TimeoutExpired as `Popen` does."""
        if self.poll() is None:
            try:
                descriptor = os.pidfd_open(self.pid)
            except ProcessLookupError:
                self.returncode = -1
                return self.returncode
            try:
                if not select.select([descriptor], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(["lean"], timeout or 0.0)
            finally:
                os.close(descriptor)
            self.returncode = -1
        assert self.returncode is not None
        return self.returncode
