"""Every `sorry` of a Lake project: one proof run for each file, in the order of the imports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from treewright.kernel.errors import TreewrightError, UsageError
from treewright.kernel.storage import atomic
from treewright.lean.hosts.host import Host
from treewright.lean.processes import LeanProcesses
from treewright.lean.project.project import Project
from treewright.lean.project.workspace import by_written_imports, find_root
from treewright.lean.sorries import lean_files
from treewright.proving import layout, run, targets
from treewright.proving.api import ProofService, Sources
from treewright.proving.phases import Observer
from treewright.proving.run import RunResult
from treewright.proving.settings import Settings
from treewright.proving.targets import NothingToProve

_OPEN_WORDS = (b"sorry", b"admit")


@dataclass(slots=True)
class ProjectObserver:
    """Callbacks for the progress of a project. The defaults do nothing.

    `file` is told the path, its number from 1, and the number of files; `result` the path and the
    result of its run.
    """

    file: Callable[[Path, int, int], Observer] = lambda path, number, total: Observer()
    result: Callable[[Path, RunResult], None] = lambda path, result: None
    problem: Callable[[Path, TreewrightError], None] = lambda path, error: None


@dataclass(slots=True)
class ProjectResult:
    """The results of a project's files.

    `left_alone` are the declarations that were not searched, by file. `problems` are the files on
    which nothing could be done, each with its error. `patch` has the proofs of all files; None if
    nothing was proved.
    """

    files: list[RunResult] = field(default_factory=list[RunResult])
    left_alone: dict[Path, tuple[str, ...]] = field(default_factory=dict[Path, tuple[str, ...]])
    problems: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    patch: Path | None = None
    stopped: bool = False

    @property
    def proved(self) -> int:
        """The number of proved goals."""
        return sum(result.proved for result in self.files)

    @property
    def total(self) -> int:
        """The number of goals."""
        return sum(result.total for result in self.files)

    @property
    def is_proved(self) -> bool:
        """Whether nothing is left to prove, in any file."""
        return not self.problems and not self.left_alone and self.proved == self.total


@dataclass(slots=True)
class ProjectProver:
    """Proves the sorries below a directory of a Lake project.

    Its Lean processes last until a file of the project is changed. Then `open_project` is called
    again, so that the next files see the change.

    Args:
        root: The directory with the files. It must be in a Lake project.
        host: Starts Lean.
        settings: The settings of every run.
        open_project: Reads the project; None if it has no modules to import.
        here: The directory below which the runs are kept.
        sources: Opens the tactic source of a run.
        observer: Is told about the progress.
        in_place: Whether proofs are put into the files.
    """

    root: Path
    host: Host
    settings: Settings
    open_project: Callable[[], Project | None]
    here: Path
    sources: Sources
    observer: ProjectObserver
    in_place: bool = False
    _base: Path = field(init=False)
    _project: Project | None = field(init=False)
    _lean: LeanProcesses | None = field(default=None, init=False)
    _patches: list[bytes] = field(default_factory=list[bytes], init=False)

    def __post_init__(self) -> None:
        base = find_root(self.root)
        if base is None:
            raise UsageError(f"{self.root} is in no Lake project: it needs a lakefile.toml")
        self._base = base
        self._project = self.open_project()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close_processes()

    def prove(self, stop_asked: Callable[[], bool]) -> ProjectResult:
        """Prove file after file.

        An error in one file does not keep the others from being proved. The patch is written anew
        after each file, so that it is there after a stop, too.
        """
        project = ProjectResult()
        all_patches = self.here / layout.PROJECT_PATCH
        all_patches.unlink(missing_ok=True)
        paths = self.files()
        for number, path in enumerate(paths, 1):
            if stop_asked():
                break
            observer = self.observer.file(path, number, len(paths))
            try:
                result, patch = self._prove_file(path, observer, stop_asked)
                project.files.append(result)
                if patch is not None:
                    self._patches.append(patch.read_bytes())
                    atomic.write_bytes(all_patches, b"".join(self._patches))
                    project.patch = all_patches
                self.observer.result(path, result)
                if result.left_alone:
                    project.left_alone[path] = result.left_alone
            except NothingToProve:  # the word stands only in a comment or a string
                continue
            except TreewrightError as error:
                project.problems.append({"file": str(path), "error": str(error)})
                self.observer.problem(path, error)
        project.stopped = stop_asked()
        return project

    def files(self) -> list[Path]:
        """Return the files that contain `sorry` or `admit`, each after the files it imports."""
        found = [path for path in lean_files(self.root) if path.name != "lakefile.lean"]
        if self._project is None:
            ordered = by_written_imports(self.root, found)
        else:
            ordered = self._project.ordered(found)
        return [path for path in ordered if any(word in path.read_bytes() for word in _OPEN_WORDS)]

    def _prove_file(
        self, path: Path, observer: Observer, stop_asked: Callable[[], bool]
    ) -> tuple[RunResult, Path | None]:
        """Return the result of a file's run, and the patch with its proofs."""
        if self._lean is None:
            axioms = frozenset(self.settings.axioms)
            self._lean = LeanProcesses(self.host, self._project, axioms=axioms)
        service = ProofService(self._lean, self.here, self.sources, observer, stop_asked)
        result = service.prove(targets.read_file_target(path), self.settings)
        directory = Path(result.directory)
        patch = run.write_patch(directory, result, self._base)
        in_place = self.in_place and result.complete
        if in_place and (written := run.write_in_place(directory, result)):
            observer.written(written)
            self._close_processes()  # the next files must see the changed file
            self._project = self.open_project()
        return result, patch

    def _close_processes(self) -> None:
        if self._lean is not None:
            self._lean.close()
        self._lean = None
