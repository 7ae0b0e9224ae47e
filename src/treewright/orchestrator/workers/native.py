"""What strategies share that need the user's own toolchain and project."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from treewright.lean.backend import find_lake, find_project
from treewright.orchestrator.workers.base import Availability


def native_project(start: Path) -> Path | Availability:
    """The Lake project around `start`, or why there is none that could be used."""
    project = find_project(start)
    if project is None:
        return Availability(False, "not inside a Lake project", "run it inside your Lake project")
    if find_lake() is None:
        return Availability(False, "no Lean toolchain is installed", "install elan")
    if importlib.util.find_spec("lean_interact") is None:
        return Availability(
            False, "lean-interact is not installed", "pip install 'treewright[lean-native]'"
        )
    return project


def requires(project: Path, package: str) -> bool:
    """Whether a project's lakefile or manifest names a package."""
    return any(
        package in (project / name).read_text(encoding="utf-8", errors="replace")
        for name in ("lakefile.toml", "lakefile.lean", "lake-manifest.json")
        if (project / name).is_file()
    )
