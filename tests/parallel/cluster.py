"""A real dask cluster on loopback: a scheduler and workers, each in its own process.

If the tests run as root, the workers cannot read the coordinator's files: they run as another user
(pytest's directories are 0700) or, if that user cannot run this Python, in a mount namespace in
which an empty directory covers those files.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests import program
from tests.parallel.harness import eventually

NOBODY = 65534
_QUIET = {
    "DASK_DISTRIBUTED__ADMIN__TICK__LIMIT": "60s",
    # A waiting cluster polls for these a hundred times a second.
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "2s",
}


@dataclass(frozen=True)
class Isolation:
    """The way in which workers are kept from the coordinator's files, which are below `hidden`."""

    hidden: Path
    user: int | None = None
    covered: bool = False

    @property
    def holds(self) -> bool:
        return self.user is not None or self.covered

    @property
    def cover(self) -> Path | None:
        return self.hidden if self.covered else None


def isolation(hidden: Path) -> Isolation:
    """Return the strongest isolation that this machine offers."""
    if os.geteuid() != 0:
        return Isolation(hidden)
    python = [sys.executable, "-c", "import distributed, treewright"]
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    with contextlib.suppress(PermissionError):
        if _works(python, **as_nobody):
            return Isolation(hidden, user=NOBODY)
    covered = Isolation(hidden, covered=True)
    return covered if _works(program.covering(hidden, python)) else Isolation(hidden)


def _works(command: list[str], **options) -> bool:
    done = subprocess.run(command, cwd="/", capture_output=True, check=False, **options)
    return done.returncode == 0


@dataclass
class Cluster:
    directory: Path
    isolation: Isolation
    address: str = ""
    scheduler: subprocess.Popen[bytes] | None = None
    workers: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start_scheduler(self) -> None:
        file = self.directory / "scheduler.json"
        self.scheduler = self._start(
            "scheduler", "dask_scheduler", "--host", "127.0.0.1", "--port", "0",
            "--no-dashboard", "--scheduler-file", str(file),
        )  # fmt: skip

        def ready() -> bool:
            with contextlib.suppress(OSError, ValueError, KeyError):
                self.address = json.loads(file.read_text())["address"]
            return bool(self.address)

        eventually(ready, "the scheduler is up")

    def start_worker(self, name: str, **environment: str) -> subprocess.Popen[bytes]:
        process = self._start(
            name, "dask_worker", self.address, "--name", name, "--nthreads", "1", "--no-nanny",
            "--no-dashboard", "--local-directory", str(self.directory / name), **environment,
        )  # fmt: skip
        self.workers[name] = process
        return process

    def wait_for_workers(self) -> None:
        def ready() -> bool:
            return all("Registered to" in self.log(name) for name in self.workers)

        eventually(ready, "the workers are registered")

    def log(self, name: str) -> str:
        return (self.directory / f"{name}.log").read_text(errors="replace")

    def end(self, name: str, number: int = signal.SIGKILL) -> None:
        process = self.workers.pop(name)
        process.send_signal(number)
        process.wait()

    def close(self) -> None:
        for process in [*self.workers.values(), *([self.scheduler] if self.scheduler else [])]:
            process.kill()
            process.wait()

    def _start(self, name: str, module: str, *args: str, **extra: str) -> subprocess.Popen[bytes]:
        own = self.directory / name
        own.mkdir()
        user = self.isolation.user
        if user is not None:
            os.chown(own, user, user)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(own),
            "TMPDIR": str(own),
            "GIT_CONFIG_NOSYSTEM": "1",
            **_QUIET,
            **extra,
        }
        with (self.directory / f"{name}.log").open("wb") as log:
            return program.start_module(
                f"distributed.cli.{module}", args,
                covered=self.isolation.cover,
                cwd=own, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                **({} if user is None else {"user": user, "group": user, "extra_groups": []}),
            )  # fmt: skip


@contextlib.contextmanager
def cluster(workers: int, isolation: Isolation) -> Iterator[Cluster]:
    directory = Path(tempfile.mkdtemp(prefix="treewright-test-cluster-"))
    directory.chmod(0o777)
    made = Cluster(directory, isolation)
    try:
        made.start_scheduler()
        for number in range(1, workers + 1):
            made.start_worker(f"w{number}")
        made.wait_for_workers()
        yield made
    finally:
        made.close()
        shutil.rmtree(directory, ignore_errors=True)
