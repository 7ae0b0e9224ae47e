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
from treewright.search import search_journal
from treewright.tree.records import layout as tree_layout
from treewright.tree.records import store

Run = TreeRun | ProofRun | SearchRun


def load_run(path: str | os.PathLike[str]) -> Run:
    """Read the run in a directory, or the run with this id in the current project.

    The run may be in progress or interrupted. Call the function again for later records.

    Args:
        path: The directory of a tree run, a proof run or a search, or the id of a run below the
            current directory.

    Returns:
        A `TreeRun`, a `ProofRun` or a `SearchRun`, as it is on disk now.

    Raises:
        UsageError: There is no such run.
        StorageError: The run cannot be read.

    Example:
        >>> import treewright
        >>> with treewright.open_search("a.search", policy="best-first", budget=5) as search:
        ...     _ = search.run(lambda task: task.number)
        >>> run = load_run("a.search")
        >>> run.is_finished, run.nodes.height
        (True, 6)
    """
    directory = find(Path(path), Path.cwd())
    if _is_proof(directory):
        return ProofRun.read(directory)
    if (directory / search_journal.EVENTS).is_file():
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
        is_search = (directory / search_journal.EVENTS).is_file()
        if is_search or _is_proof(directory) or store.exists(directory):
            return directory
    raise UsageError(
        f"no run at {path}: give the directory of a tree run, a proof run or a search, or the id "
        f"of a run below {base / STATE_DIR}"
    )


def _is_proof(directory: Path) -> bool:
    return (directory / proof_layout.RUN).is_file()
