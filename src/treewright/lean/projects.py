"""The Lake project around a file, for the bundled Lean; and a Lean with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from treewright.lean.backend import Choice, open_host
from treewright.lean.host import Host
from treewright.lean.wasm.compiler import WasmCompiler
from treewright.lean.wasm.install import Progress, ensure_installed, silent
from treewright.lean.workspace.discovery import open_workspace
from treewright.lean.workspace.ordering import read_text
from treewright.lean.workspace.project import Announce, Project
from treewright.lean.workspace.store import ModuleStore


def open_project(
    start: Path,
    announce: Announce = lambda text: None,
    store: ModuleStore | None = None,
    read: Callable[[Path], str | None] = read_text,
    allowed: Callable[[Path], bool] = lambda directory: True,
) -> Project | None:
    """The project that a file or directory is in, or None; what it says goes to `announce`.

    `read` gives the text of a module, or None if it cannot be had; `allowed` says where packages
    may be.
    """
    workspace = open_workspace(start, allowed)
    if workspace is None:
        return None
    for note in workspace.notes:
        announce(note)
    return Project(workspace, WasmCompiler(ensure_installed), store, announce, read)


def open_lean(
    choice: Choice,
    start: Path | None,
    announce: Announce = lambda text: None,
    progress: Progress = silent,
) -> tuple[Host, Project | None]:
    """The chosen Lean. The bundled one is given the modules of the project around `start`; a
    toolchain finds its project itself."""
    host = open_host(choice, progress)
    if choice.backend != "wasm" or start is None:
        return host, None
    return host, open_project(start, announce)
