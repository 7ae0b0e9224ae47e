"""Which Lean to use, and why: the bundled one or the project's own toolchain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from treewright.kernel.errors import UsageError
from treewright.lean.host import Host
from treewright.lean.host_session import HostSession
from treewright.lean.native.host import native_host
from treewright.lean.native.toolchain import (
    find_project,
    find_toolchain,
    pinned,
    require_toolchain,
    too_old,
)
from treewright.lean.wasm.install import Progress, ensure_installed, silent
from treewright.lean.workspace.project import Project

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
    """`auto`: native inside a Lake project whose toolchain is installed, else wasm.

    The bundled Lean is a sandbox of its own; `sandbox` is about native code.
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
        return Choice("native", _asked_for(project), project, sandbox)
    if project is None:
        return Choice("wasm", "not inside a Lake project")
    toolchain = find_toolchain(project)
    problem = toolchain if isinstance(toolchain, str) else too_old(toolchain)
    if problem:
        return Choice("wasm", f"inside the Lake project {project.name}, but {problem}")
    return Choice("native", f"inside the Lake project {project.name}", project, sandbox)


def _asked_for(project: Path | None) -> str:
    return "asked for, without a Lake project" if project is None else "asked for"


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


def open_session(
    choice: Choice,
    imports: Sequence[str] = ("Init",),
    preamble: str = "",
    progress: Progress = silent,
    project: Project | None = None,
) -> HostSession:
    return HostSession(open_host(choice, progress), imports, preamble, project)
