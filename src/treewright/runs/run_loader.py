"""`treewright.load_run`: read a run of any kind. No lease is taken, and no file is written."""

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
    """Read the run in a directory, or the run with this id in the current project.

    The run may be in progress or interrupted. Call the function again for later records.
    """
    directory = find(Path(path), Path.cwd())
    if _is_proof(directory):
        return ProofRun.read(directory)
    if (directory / storage.EVENTS).is_file():
        return SearchRun.read(directory)
    return TreeRun.read(directory)


def find(path: Path, base: Path) -> Path:
    """Return the directory of a run, given the directory or the id.

    Raises:
        UsageError: There is no such run.
    """
    runs = (tree_layout.RUNS_DIR, proof_layout.RUNS_DIR)
    ids = [base / STATE_DIR / name / path for name in runs] if path.name == str(path) else []
    for directory in (base / path, *ids):
        is_search = (directory / storage.EVENTS).is_file()
        if is_search or _is_proof(directory) or store.exists(directory):
            return directory
    raise UsageError(
        f"no run at {path}: give the directory of a tree run, a proof run or a search, or the id "
        f"of a run below {base / STATE_DIR}"
    )


def _is_proof(directory: Path) -> bool:
    return (directory / proof_layout.RUN).is_file()
