"""The lexical index of a Lean's library. It is built at first use, which takes seconds.

It is kept in the user's cache, one file for each Lean and set of imports. If two processes need it
at the same time, it is built once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from treewright.kernel.storage import atomic, file_lock
from treewright.lean.session.interface import LeanSession
from treewright.premises.index import PremiseIndex
from treewright.premises.index_builder import Progress, build_lexical, default_path, silent

DEFAULT_IMPORTS = ("Init",)


def library_path() -> Path:
    """Return the path of the index of the default imports."""
    return default_path(DEFAULT_IMPORTS)


def ensure_index(
    sessions: Callable[[], LeanSession],
    imports: Sequence[str] = DEFAULT_IMPORTS,
    *,
    path: Path | None = None,
    announce: Callable[[str], None] = lambda text: None,
    progress: Progress = silent,
) -> Path:
    """Return the path of the index of some imports, and build it if it is missing.

    Args:
        sessions: Starts a Lean session that has these imports.
        imports: The imported modules.
        path: The path of the index, if it is not that of the bundled Lean.
        announce: Is told when the index is built.
        progress: Is told about the progress of building.
    """
    path = path or default_path(imports)
    if is_finished(path):
        return path
    atomic.make_directory(path.parent)
    lock = path.with_suffix(".lock")
    with atomic.storage_errors(lock), file_lock.holding(lock):
        if not is_finished(path):
            announce("listing what the library declares, for the premise index (once)")
            session = sessions()
            try:
                build_lexical(session, path, progress=progress)
            finally:
                session.close()
    return path


def is_finished(path: Path) -> bool:
    """Return whether there is an index that can be searched by words."""
    if not path.is_file():
        return False
    with PremiseIndex.open(path) as index:
        return index.is_searchable


def library_digest() -> str | None:
    """Return the digest of the index of the library, if it is there."""
    if not is_finished(library_path()):
        return None
    with PremiseIndex.open(library_path()) as index:
        return index.digest
