"""Start the dashboard as a separate process, and read its address from stdout."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests import program


class Server:
    """A running `treewright dashboard`."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process = process
        self.url = url.rstrip("/")

    @property
    def base(self) -> str:
        return self.url.partition("/?")[0]

    @property
    def port(self) -> int:
        return int(self.base.rpartition(":")[2])

    def get(self, path: str, **kwargs) -> httpx.Response:
        return httpx.get(self.base + path, timeout=60, **kwargs)


@contextlib.contextmanager
def served(*arguments: str | Path, port: int = 0) -> Iterator[Server]:
    """Start the command with these arguments, and end it by SIGKILL."""
    with program.start(
        ["dashboard", "--port", str(port), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url.startswith("http"), "the dashboard did not start"
            yield Server(process, url)
        finally:
            process.kill()
