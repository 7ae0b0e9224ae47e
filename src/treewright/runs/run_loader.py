"""`treewright.load_run`: a run of any kind, to look at. Takes no lease and writes nothing."""

from __future__ import annotations

import os
from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.kernel.storage.run_directory import STATE_DIR
from treewright.proving import layout as proof_layout
from treewright.runs.proof_run import ProofRun
from treewright.runs.search_run import SearchRun
from treewright.runs.tree_run import TreeRun
from treewright.search import storage
from treewright.tree.records import layout as tree_layout
from treewright.tree.records import store

Run = TreeRun | ProofRun | SearchRun


def load_run(path: str | os.PathLike[str]) -> Run:
    """The run in a directory, or with this id below `.treewright` of the current directory.

    It is what the run's files say now, whether somebody works on it or it was killed; call it
    again for what came since.
    """
    place = find(Path(path), Path.cwd())
    if _is_proof(place):
        return ProofRun.read(place)
    if (place / storage.EVENTS).is_file():
        return SearchRun.read(place)
    return TreeRun.read(place)


def find(path: Path, base: Path) -> Path:
    """Where a run is, given its directory or its id."""
    runs = (tree_layout.RUNS_DIR, proof_layout.RUNS_DIR)
    ids = [base / STATE_DIR / name / path for name in runs] if path.name == str(path) else []
    for place in (base / path, *ids):
        if _is_proof(place) or (place / storage.EVENTS).is_file() or store.exists(place):
            return place
    raise UsageError(
        f"no run at {path}: give the directory of a tree run, a proof run or a search, or the id "
        f"of a run below {base / STATE_DIR}"
    )


def _is_proof(place: Path) -> bool:
    return (place / proof_layout.RUN).is_file()
