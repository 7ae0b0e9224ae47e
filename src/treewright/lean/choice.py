"""Which Lean to use, and why: the bundled one or the project's own toolchain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from treewright.kernel.errors import UsageError
from treewright.lean.hosts.host import Host
from treewright.lean.hosts.native.host import native_host
from treewright.lean.hosts.native.toolchain import (
    find_project,
    find_toolchain,
    pinned,
    require_toolchain,
    too_old,
)
from treewright.lean.hosts.wasm.compiler import WasmCompiler
from treewright.lean.hosts.wasm.install import Progress, ensure_installed, silent
from treewright.lean.processes import LeanProcesses
from treewright.lean.project.module_store import ModuleStore
from treewright.lean.project.project import Announce, Project
from treewright.lean.project.workspace import find_root, open_workspace, read_text
from treewright.lean.session.answers import CheckResult, SessionLost, Timeout
from treewright.lean.session.errors import MissingModule

Backend = Literal["wasm", "native"]
BACKENDS = ("auto", "wasm", "native")
BUNDLED_VERSION = "4.28.0"


@dataclass(frozen=True, slots=True)
class Choice:
    """A backend, the reason in words, and the Lake project for `native`, if there is one."""

    backend: Backend
    reason: str
    project: Path | None = None
    sandbox: bool = False

    def __str__(self) -> str:
        return f"{self.backend} ({self.reason})"


def choose(requested: str = "auto", start: Path | None = None, *, sandbox: bool = False) -> Choice:
    """Choose a Lean.

    Args:
        requested: `wasm`, `native`, or `auto`: native inside a Lake project with an
            installed toolchain, else wasm.
        start: where to look for a Lake project (default: the current directory).
        sandbox: whether native Lean runs in bubblewrap. The bundled Lean is always in a sandbox.

    Raises:
        UsageError: the requested Lean does not exist or is not installed.
    """
    if requested not in BACKENDS:
        raise UsageError(
            f"there is no Lean backend '{requested}'; choose from {', '.join(BACKENDS)}"
        )
    if requested == "wasm":
        return Choice("wasm", "asked for")
    project = find_project(start or Path.cwd())
    if requested == "native":
        require_toolchain(project)
        reason = "asked for, without a Lake project" if project is None else "asked for"
        return Choice("native", reason, project, sandbox)
    if project is None:
        return Choice("wasm", "not inside a Lake project")
    toolchain = find_toolchain(project)
    problem = toolchain if isinstance(toolchain, str) else too_old(toolchain)
    if problem:
        return Choice("wasm", f"inside the Lake project {project.name}, but {problem}")
    return Choice("native", f"inside the Lake project {project.name}", project, sandbox)


def other_version(choice: Choice, start: Path | None = None) -> str | None:
    """What to say where a project is written for another Lean than the bundled one, which has
    tactics that others do not have."""
    asked_for = pinned(find_project(start or Path.cwd())).rpartition(":")[2].removeprefix("v")
    if choice.backend == "native" or asked_for in ("", BUNDLED_VERSION):
        return None
    return (
        f"the project asks for Lean {asked_for}, the bundled one is {BUNDLED_VERSION}: what is "
        "proved with it may not compile there; with that toolchain installed, --lean native "
        "searches and checks with it"
    )


def open_host(choice: Choice, progress: Progress = silent) -> Host:
    """The chosen Lean; the bundled one is installed first if it is not there."""
    if choice.backend == "native":
        return native_host(choice.project, sandbox=choice.sandbox)
    return ensure_installed(progress)


def open_project(
    start: Path,
    announce: Announce = lambda text: None,
    store: ModuleStore | None = None,
    read: Callable[[Path], str | None] = read_text,
    allowed: Callable[[Path], bool] = lambda directory: True,
) -> Project | None:
    """Return the Lake project around a path, for the bundled Lean; None if there is none.

    Args:
        start: a file or directory.
        announce: receives the notes about the project.
        store: the cache of compiled modules (default: the user's).
        read: returns the text of a module, or None if it cannot be read.
        allowed: whether packages may be in a directory.
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


def check_files(
    host: Host,
    sources: Sequence[tuple[Path, str]],
    project_of: Callable[[Path], Project | None],
    *,
    timeout: float,
) -> Iterator[tuple[Path, CheckResult | Timeout | SessionLost]]:
    """Check file after file; yield each path with its result.

    The Lean processes are replaced when the next file is in another project, and a session when it
    was lost. A module that one file lacks does not stop the check of the others; of a single file
    it is raised.
    """
    lean: LeanProcesses | None = None
    try:
        for path, source in sources:
            root = find_root(path) if host.backend == "wasm" else None
            if lean is None or root != (lean.project and lean.project.workspace.root):
                if lean is not None:
                    lean.close()
                lean = LeanProcesses(host, project_of(path))
            try:
                result = lean.kept_session().check(source, timeout=timeout)
            except MissingModule as error:
                if len(sources) == 1:
                    raise
                result = SessionLost(str(error))
            yield path, result
    finally:
        if lean is not None:
            lean.close()
