"""Every `sorry` of a Lake project: a run for each file, in the order of their imports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.lean.hosts.host import Host
from treewright.lean.project.import_order import by_written_imports
from treewright.lean.project.project import Project
from treewright.lean.project.workspace import find_root
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.interface import LeanSession
from treewright.lean.sorries import lean_files
from treewright.lean.verify.replayer import Replayer
from treewright.proving import run, targets
from treewright.proving.api import Proving, Sources
from treewright.proving.prover import Observer
from treewright.proving.run import RunResult
from treewright.proving.settings import Settings
from treewright.proving.targets import NothingToProve

_OPEN = (b"sorry", b"admit")


@dataclass(slots=True)
class ProjectObserver:
    """Told about a project; the defaults say nothing."""

    file: Callable[[Path], Observer] = lambda path: Observer()
    patch: Callable[[Path, RunResult, Path], None] = lambda path, result, patch: None
    problem: Callable[[Path, TreewrightError], None] = lambda path, error: None


@dataclass(slots=True)
class ProjectResult:
    """What came of each file, and of those with which something was wrong; `left_alone`: what was
    not tried, by file."""

    files: list[RunResult] = field(default_factory=list[RunResult])
    left_alone: dict[Path, tuple[str, ...]] = field(default_factory=dict[Path, tuple[str, ...]])
    problems: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    stopped: bool = False

    @property
    def proved(self) -> int:
        return sum(result.proved for result in self.files)

    @property
    def total(self) -> int:
        return sum(result.total for result in self.files)

    @property
    def is_proved(self) -> bool:
        """Whether nothing is left to do, also in files with which something is wrong."""
        return not self.problems and not self.left_alone and self.proved == self.total


class WholeProject:
    """Proves what is open below `root`. Its session and its replay check last until a file of the
    project is changed; `open_project` is asked again then. Runs are kept below `here`."""

    def __init__(
        self,
        root: Path,
        host: Host,
        settings: Settings,
        open_project: Callable[[], Project | None],
        *,
        here: Path,
        sources: Sources,
        observer: ProjectObserver,
        in_place: bool = False,
    ) -> None:
        base = find_root(root)
        if base is None:
            raise UsageError(f"{root} is in no Lake project: it needs a lakefile.toml")
        self._base = base
        self._root = root
        self._host = host
        self._settings = settings
        self._open_project = open_project
        self._here = here
        self._sources = sources
        self._observer = observer
        self._in_place = in_place
        self._replayer: Replayer | None = None
        self._session: LeanSession | None = None
        self._project = open_project()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def prove(self, stop_asked: Callable[[], bool]) -> ProjectResult:
        """A file that cannot be worked on keeps nobody from the others."""
        came = ProjectResult()
        for path in self.files():
            if stop_asked():
                break
            try:
                result = self._prove_file(path, stop_asked)
                came.files.append(result)
                if result.left_alone:
                    came.left_alone[path] = result.left_alone
            except NothingToProve:  # the word stands in a comment or a string only
                continue
            except TreewrightError as error:
                came.problems.append({"file": str(path), "error": str(error)})
                self._observer.problem(path, error)
        came.stopped = stop_asked()
        return came

    def files(self) -> list[Path]:
        """Those with something open, each behind what it imports."""
        found = [path for path in lean_files(self._root) if path.name != "lakefile.lean"]
        if self._project is None:
            ordered = by_written_imports(self._root, found)
        else:
            ordered = self._project.ordered(found)
        return [path for path in ordered if any(word in path.read_bytes() for word in _OPEN)]

    def _prove_file(self, path: Path, stop_asked: Callable[[], bool]) -> RunResult:
        observer = self._observer.file(path)
        proving = Proving(
            self._new_session,
            self._replay_check(),
            self._project,
            self._here,
            self._sources,
            observer,
            stop_asked,
            self._session,
        )
        try:
            result = proving.prove(targets.file_target(path), self._settings)
        finally:
            self._session = proving.session
        directory = Path(result.directory)
        if patch := run.write_patch(directory, result, self._base):
            self._observer.patch(path, result, patch)
        in_place = self._in_place and result.complete
        if in_place and (written := run.write_in_place(directory, result)):
            observer.written(written)
            self._end()  # the next ones read the project as it is now
            self._project = self._open_project()
        return result

    def _replay_check(self) -> Replayer:
        if self._replayer is None:
            axioms = frozenset(self._settings.axioms)
            self._replayer = Replayer(self._host, axioms=axioms, project=self._project)
        return self._replayer

    def _new_session(self) -> LeanSession:
        return HostSession(self._host, project=self._project)

    def _end(self) -> None:
        for process in (self._session, self._replayer):
            if process is not None:
                process.close()
        self._session = self._replayer = None
