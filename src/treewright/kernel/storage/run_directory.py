"""Run ids, run directories, and the record of the machine that a run was started on."""

from __future__ import annotations

import os
import platform
import re
import socket
import sys
from pathlib import Path

import msgspec

import treewright
from treewright.kernel.clock import now
from treewright.kernel.errors import UsageError
from treewright.kernel.storage import atomic

STATE_DIR = ".treewright"
"""The directory of a project for runs, the ledger and experiments."""
LEASE_DIR = "lease"
"""The directory of the lease in every run directory."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_LONGEST_RUN_ID = 80


class RunEnvironment(msgspec.Struct, frozen=True):
    """The machine and the versions that a run was started with. No decision depends on them."""

    treewright: str
    python: str
    platform: str
    host: str
    argv: list[str]

    @classmethod
    def here(cls) -> RunEnvironment:
        """Return the environment of this process."""
        return cls(
            treewright=treewright.__version__,
            python=platform.python_version(),
            platform=platform.platform(),
            host=socket.gethostname(),
            argv=[Path(sys.argv[0]).name, *sys.argv[1:]],
        )


def validate_run_id(run_id: str) -> str:
    """Return a run id; raise UsageError unless it can be a directory name and part of a git ref."""
    if len(run_id) > _LONGEST_RUN_ID or not _RUN_ID.fullmatch(run_id) or run_id.endswith(".lock"):
        raise UsageError(
            f"run id {run_id!r} is not usable: letters, digits, '_', '-' and inner dots, "
            f"{_LONGEST_RUN_ID} characters at most"
        )
    return run_id


def new_run_id(parent: Path) -> str:
    """Return a timestamped id that no directory under `parent` has yet."""
    stamp = now().strftime("%Y%m%d_%H%M%S")
    candidate, count = stamp, 1
    while (parent / candidate).exists():
        count += 1
        candidate = f"{stamp}_{count}"
    return candidate


def prepare(path: Path) -> None:
    """Create the directory of a run; raise UsageError if it is not writable."""
    atomic.make_directory(path)
    if not os.access(path, os.W_OK):
        raise UsageError(f"run directory {path} is not writable; fix its permissions and retry")


def hide_from_git(runs: Path) -> None:
    """Create a directory with a `.gitignore` that hides it from the user's git status."""
    atomic.make_directory(runs)
    ignore = runs / ".gitignore"
    if not ignore.exists():
        atomic.write_bytes(ignore, b"*\n")
