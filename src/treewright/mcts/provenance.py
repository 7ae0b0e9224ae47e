"""What a run remembers about where it came from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from treewright.lean.types import SessionInfo
from treewright.mcts.settings import GitRecord, LeanRecord

_GIT_SECONDS = 20


def git_record(directory: Path) -> GitRecord | None:
    """The commit and whether there are changes; None outside a repository or without git."""
    commit = _git(directory, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    return GitRecord(commit.strip(), bool(_git(directory, "status", "--porcelain")))


def lean_record(info: SessionInfo) -> LeanRecord:
    return LeanRecord(info.backend, info.lean, info.detail)


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *arguments],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
