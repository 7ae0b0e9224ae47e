"""The directories and files of a run that a candidate's code can reach besides its own.

A candidate may lock a directory that the search writes to, or put a pipe in place of a file. Every
later candidate would be blamed for that, or the run could not be resumed. `restore` makes these
paths usable again after such code has run, and when a run is opened. It creates nothing: a writer
creates the directory that it writes to.
"""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path

from treewright.kernel.storage import untrusted
from treewright.tree.records import layout

_DIRECTORIES = (
    *(layout.CANDIDATES, layout.WORKTREES, layout.EVALUATIONS, layout.ARTIFACTS),
    *(layout.IDEAS, layout.PICTURES),
)
_RECORDS = (layout.LEASE, layout.STEERING, layout.EVENTS, layout.MANIFEST)
_DERIVED = (layout.MANIFEST, layout.REPORT, layout.VALIDATION)
"""Files that are written again from the journal."""

_log = logging.getLogger("treewright")


def unlock(run_dir: Path) -> None:
    """Let the owner read and write the records of a run; their contents stay as they are.

    The records of a run whose directory is read-only stay locked.
    """
    for name in _RECORDS:
        untrusted.restore_access(run_dir / name)


def restore(run_dir: Path, *below: Path) -> None:
    """Make the paths of a run usable again.

    Args:
        run_dir: The run's directory.
        below: More directories, each of which lies in the one before.
    """
    untrusted.restore_access(run_dir)
    unlock(run_dir)
    for name in _DIRECTORIES:
        _warn_of_link(run_dir / name)
        untrusted.reclaim_directory(run_dir / name)
    for directory in below:
        untrusted.reclaim_directory(directory)
    for name in _DERIVED:
        untrusted.remove_unless_file(run_dir / name)


def _warn_of_link(path: Path) -> None:
    """Warn that a link is going to be removed: the user may have moved the directory away."""
    with contextlib.suppress(OSError):
        if path.is_symlink():
            _log.warning(
                "%s was a link to %r; directories of a run must not be links. The link was "
                "removed, and the files there were left as they are",
                path,
                str(path.readlink()),
            )
