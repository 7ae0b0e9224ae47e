"""Run ids, run directories and what a run remembers of the machine it was made on."""

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
"""Where everything of a project is kept that no user wrote: runs, ledger, experiments."""
LEASE_DIR = "lease"
"""Of any run: who owns it."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_LONGEST_RUN_ID = 80


class RunEnvironment(msgspec.Struct, frozen=True):
    """Where and with what a run was started. For the reader; no decision depends on it."""

    treewright: str
    python: str
    platform: str
    host: str
    argv: list[str]

    @classmethod
    def here(cls) -> RunEnvironment:
        return cls(
            treewright=treewright.__version__,
            python=platform.python_version(),
            platform=platform.platform(),
            host=socket.gethostname(),
            argv=[Path(sys.argv[0]).name, *sys.argv[1:]],
        )


def validate_run_id(run_id: str) -> str:
    """Ids become directory names and parts of git refs, so they are plain."""
    if len(run_id) > _LONGEST_RUN_ID or not _RUN_ID.fullmatch(run_id) or run_id.endswith(".lock"):
        raise UsageError(
            f"run id {run_id!r} is not usable: letters, digits, '_', '-' and inner dots, "
            f"{_LONGEST_RUN_ID} characters at most"
        )
    return run_id


def new_run_id(parent: Path) -> str:
    """A timestamped id that no directory under `parent` has yet."""
    stamp = now().strftime("%Y%m%d_%H%M%S")
    candidate, count = stamp, 1
    while (parent / candidate).exists():
        count += 1
        candidate = f"{stamp}_{count}"
    return candidate


def prepare(path: Path) -> None:
    """Makes the directory of a run, and checks that it can be written."""
    atomic.make_directory(path)
    if not os.access(path, os.W_OK):
        raise UsageError(f"run directory {path} is not writable; fix its permissions and retry")


def hide_from_git(runs: Path) -> None:
    """Makes a directory whose `.gitignore` hides it, without a change to the user's files."""
    atomic.make_directory(runs)
    ignore = runs / ".gitignore"
    if not ignore.exists():
        atomic.write_bytes(ignore, b"*\n")
