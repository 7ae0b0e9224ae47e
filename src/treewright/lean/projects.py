"""The Lake project around a file, for the bundled Lean; and a Lean with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from treewright.lean.backend import Choice, open_host
from treewright.lean.host import Host
from treewright.lean.host_session import HostSession
from treewright.lean.session import MissingModule
from treewright.lean.sorries import lean_files
from treewright.lean.types import CheckResult, SessionLost, Timeout
from treewright.lean.wasm.compiler import WasmCompiler
from treewright.lean.wasm.install import Progress, ensure_installed, silent
from treewright.lean.workspace.discovery import find_root, open_workspace
from treewright.lean.workspace.lakefile import Options
from treewright.lean.workspace.ordering import read_text
from treewright.lean.workspace.project import Announce, Compiled, Project
from treewright.lean.workspace.store import Header, ModuleStore


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


def check_files(
    host: Host,
    sources: Sequence[tuple[Path, str]],
    project_of: Callable[[Path], Project | None],
    *,
    timeout: float,
) -> Iterator[tuple[Path, CheckResult | Timeout | SessionLost]]:
    """File after file, in another session when one was lost or the next is in another project.

    What one file lacks keeps nobody from the others; of a single file it is raised.
    """
    session: HostSession | None = None
    project: Project | None = None
    try:
        for path, source in sources:
            moved = host.backend == "wasm" and not _is_in(project, path)
            if session is None or moved or not session.alive:
                if session is not None:
                    session.close()
                project = project_of(path)
                session = HostSession(host, project=project)
            try:
                result = session.check(source, timeout=timeout)
            except MissingModule as error:
                if len(sources) == 1:
                    raise
                result = SessionLost(str(error))
            yield path, result
    finally:
        if session is not None:
            session.close()


def _is_in(project: Project | None, path: Path) -> bool:
    """Whether a file belongs to a project, or to none if that is None."""
    return find_root(path) == (project.workspace.root if project is not None else None)


@dataclass(slots=True)
class Kept:
    """What the cache knows of a project's modules: how many are compiled, why others cannot be,
    how many nobody has tried as they are now."""

    compiled: int = 0
    wrong: dict[str, str] = field(default_factory=dict[str, str])
    untried: int = 0


def kept_modules(start: Path, store: ModuleStore | None = None) -> Kept:
    """For the modules of the project around `start`. Starts no Lean and compiles nothing."""
    workspace = open_workspace(start)
    kept = Kept()
    if workspace is None:
        return kept
    project = Project(workspace, _Untried(ensure_installed), store)
    for path in lean_files(workspace.root):
        module = workspace.module_of(path)
        if module is None:
            continue
        try:
            problem = project.problem_of(module)
        except _NotThere:
            kept.untried += 1
            continue
        if problem:
            kept.wrong[module] = problem
        else:
            kept.compiled += 1
    return kept


class _NotThere(Exception):
    pass


class _Untried(WasmCompiler):
    """Has the version of the bundled Lean, and does nothing."""

    def headers(self, texts: Sequence[str]) -> list[Header]:
        raise _NotThere

    def compile(
        self, module: str, text: str, options: Options, imports: Iterable[Compiled]
    ) -> NoReturn:
        raise _NotThere
