"""Repositories inside the roots: found there, and with all of their objects there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.mcp_server.confinement import Confinement

_LONGEST = 64 << 10


def require_confined(repository: Path, files: Confinement) -> None:
    """Refuses one whose `.git`, common directory or alternates lead out of the roots."""
    git = repository / ".git"
    if not git.is_dir() and git.exists():  # a worktree: a file says where the repository is
        text = files.read(files.resolve(str(git)), _LONGEST).strip()
        git = repository / text.removeprefix("gitdir:").strip()
    for place in _places(git):
        if files.root_of(place.resolve()) is None:
            raise UsageError(
                "the repository keeps its objects outside the roots; start the server with "
                f"{place} as a --root too"
            )


def environment(roots: Iterable[Path]) -> dict[str, str]:
    """For git: it does not look for a repository above a root."""
    return {"GIT_CEILING_DIRECTORIES": os.pathsep.join(str(root.parent) for root in roots)}


def _places(git: Path) -> list[Path]:
    places = [git, *_named(git / "commondir", git)]
    for base in list(places):
        objects = base / "objects"
        places += [objects, *_named(objects / "info" / "alternates", objects)]
    return places


def _named(path: Path, base: Path) -> list[Path]:
    """The directories that the lines of a file name."""
    try:
        lines = path.read_bytes()[:_LONGEST].decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [base / line.strip() for line in lines if line.strip() and not line.startswith("#")]
