"""What a run remembers about where it came from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.lean.types import SessionInfo
from treewright.lean.workspace.project import Project
from treewright.proving.settings import FileTarget, GitRecord, LeanRecord, RunRecord, Target

_GIT_SECONDS = 20


def git_record(directory: Path) -> GitRecord | None:
    """The commit and whether there are changes; None outside a repository or without git."""
    commit = _git(directory, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    return GitRecord(commit.strip(), bool(_git(directory, "status", "--porcelain")))


def lean_record(info: SessionInfo, modules: dict[str, str] | None = None) -> LeanRecord:
    return LeanRecord(info.backend, info.lean, info.detail, modules or {})


def modules_of(target: Target, project: Project | None) -> dict[str, str]:
    """The modules of its project that a file rests on, and the sha256 of their texts."""
    if project is None or not isinstance(target, FileTarget):
        return {}
    modules = project.modules_for(project.imports_of(target.source))
    return {module.name: module.source for module in modules}


def require_unchanged(record: RunRecord, modules: dict[str, str]) -> None:
    """Refuses to continue a run whose project means something else now."""
    before = record.lean.modules
    changed = [name for name in before | modules if before.get(name) != modules.get(name)]
    if changed:
        raise UsageError(f"{min(changed)} was edited since this run began; begin another one")


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            # Looking runs no program that the repository's configuration names.
            ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", *arguments],
            cwd=directory,
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
