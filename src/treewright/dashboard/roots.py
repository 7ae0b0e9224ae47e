"""Find the runs below the directories that were given on the command line.

A root is a project, its `.treewright` directory, one of the directories of runs in it, or a single
run. An experiment counts as one run, and the proof runs of its grid are found through it. No file
outside a root is read: a run that is a symbolic link to another place is not listed. A user with
`.treewright` in another place gives that place as a root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from treewright.cellview.experiment import layout as experiment_layout
from treewright.kernel.errors import UsageError
from treewright.kernel.storage.run_directory import STATE_DIR, validate_run_id
from treewright.orchestrator.ledger.attempts import shown_ledger_path
from treewright.orchestrator.ledger.schema import LEDGER
from treewright.proving import layout as proof_layout
from treewright.tree.records import layout as tree_layout

Kind = Literal["tree", "proof", "experiment", "bank"]

_DIRECTORIES: dict[str, Kind] = {
    tree_layout.RUNS_DIR: "tree",
    proof_layout.RUNS_DIR: "proof",
    experiment_layout.EXPERIMENTS_DIR: "experiment",
}
_MARKS: dict[Kind, tuple[str, ...]] = {
    "tree": (tree_layout.EVENTS, tree_layout.MANIFEST),
    "proof": (proof_layout.TRACE, proof_layout.RUN),
    "experiment": (experiment_layout.PLAN,),
}


@dataclass(frozen=True, slots=True)
class RunRef:
    """A run. `project` is its repository; `experiment` is the id of its experiment, if any."""

    kind: Kind
    root: int
    run_id: str
    path: Path
    project: Path
    experiment: str | None = None

    @property
    def key(self) -> str:
        """Return the name of the run in pages and in the API."""
        if self.experiment is not None:
            return f"experiment/{self.root}/{self.experiment}/{self.run_id}"
        return f"{self.kind}/{self.root}/{self.run_id}"


class Roots:
    """The given roots. Their paths are resolved once; their runs are looked up every time."""

    def __init__(self, paths: Sequence[Path]) -> None:
        for path in paths:
            if not path.is_dir():
                raise UsageError(f"no directory {path}; give a project or a run with --runs")
        self._roots = [_Root(index, path.resolve()) for index, path in enumerate(paths)]

    def scan(self) -> list[RunRef]:
        """Return every run, in the order of roots and names."""
        return [run for root in self._roots for run in root.scan()]

    def find(self, kind: str, root: int, run_id: str) -> RunRef | None:
        """Return one run, or None if the root has no such run."""
        if not 0 <= root < len(self._roots):
            return None
        return self._roots[root].find(kind, run_id)

    def find_cell(self, root: int, experiment: str, cell: str) -> RunRef | None:
        """Return one proof run of an experiment's grid, or None."""
        found = self.find("experiment", root, experiment)
        return self._roots[root].cell(found, cell) if found is not None else None

    def find_key(self, key: str) -> RunRef | None:
        """Return the run with this `RunRef.key`, or None."""
        kind, _, rest = key.partition("/")
        root, _, run_id = rest.partition("/")
        index = parse_number(root)
        if index is None:
            return None
        experiment, _, cell = run_id.partition("/")
        if kind == "experiment" and cell:
            return self.find_cell(index, experiment, cell)
        return self.find(kind, index, run_id)

    @property
    def names(self) -> list[str]:
        return [str(root.given) for root in self._roots]

    @property
    def first_project(self) -> Path:
        return self._roots[0].project


class _Root:
    def __init__(self, index: int, given: Path) -> None:
        self.index = index
        self.given = given
        self._single: Kind | None = next((kind for kind in _MARKS if _is_run(given, kind)), None)
        self._state: Path | None = None
        self._parents: dict[Kind, Path] = {}
        if self._single is not None:
            self.project = _project_of(given.parent.parent)
        elif given.name in _DIRECTORIES:
            self._parents[_DIRECTORIES[given.name]] = given
            self.project = _project_of(given.parent)
        else:
            inside = given.name == STATE_DIR or any(
                (given / name).is_dir() for name in _DIRECTORIES
            )
            self._state = given if inside else given / STATE_DIR
            self._parents = {kind: self._state / name for name, kind in _DIRECTORIES.items()}
            self.project = _project_of(self._state)

    def scan(self) -> Iterator[RunRef]:
        if self._single is not None:
            yield self._ref(self._single, self.given)
        for kind, parent in self._parents.items():
            try:
                names = sorted(entry.name for entry in parent.iterdir())
            except OSError:
                continue
            for name in names:
                found = self.find(kind, name)
                if found is not None:
                    yield found
        ledger = self.find("bank", "ledger")
        if ledger is not None:
            yield ledger

    def find(self, kind: str, run_id: str) -> RunRef | None:
        if kind == "bank":
            return self._ledger() if run_id == "ledger" else None
        try:
            validate_run_id(run_id)
        except UsageError:
            return None
        if self._single is not None:
            fits = kind == self._single and run_id == self.given.name
            return self._ref(self._single, self.given) if fits else None
        for own_kind, parent in self._parents.items():
            path = parent / run_id
            if own_kind == kind and _is_run(path, own_kind) and self._confines(path):
                return self._ref(own_kind, path)
        return None

    def cell(self, experiment: RunRef, name: str) -> RunRef | None:
        try:
            validate_run_id(name)
        except UsageError:
            return None
        path = experiment.path / experiment_layout.CELLS / name
        if not _is_run(path, "proof") or not self._confines(path):
            return None
        return RunRef("proof", self.index, name, path, self.project, experiment.run_id)

    def _ledger(self) -> RunRef | None:
        if self._state is None:
            return None
        path = shown_ledger_path(self._state / LEDGER)
        if not _is_file(path) or not self._confines(path):
            return None
        return RunRef("bank", self.index, "ledger", path, self.project)

    def _ref(self, kind: Kind, path: Path) -> RunRef:
        return RunRef(kind, self.index, path.name, path, self.project)

    def _confines(self, path: Path) -> bool:
        """Return whether a path is inside the root after all symbolic links are resolved."""
        return path.resolve().is_relative_to(self.given)


def _project_of(state: Path) -> Path:
    return state.parent if state.name == STATE_DIR else state


def _is_run(path: Path, kind: Kind) -> bool:
    return any(_is_file(path / name) for name in _MARKS[kind])


def _is_file(path: Path) -> bool:
    """Return whether a path is a file. A file without permission counts as missing."""
    try:
        return path.is_file()
    except OSError:
        return False


_MAX_DIGITS = 18
"""A number with this many digits fits in 64 bits."""


def parse_number(text: str) -> int | None:
    """Return the number in a text, or None. Python refuses to convert very long ones."""
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else None
