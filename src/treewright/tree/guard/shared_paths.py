"""The places of a run beside a candidate's own, which its code can reach and must not keep.

Code under test runs as the same user as the search. It may lock a directory that the search
writes to, or put a pipe in its place, and every later candidate would be blamed for that, or the
run could not be resumed. So these places are looked at whenever such code has run, and when a run
is opened. Nothing is made here: whoever writes makes the directory it writes to.
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
"""What is written anew from the journal."""

_log = logging.getLogger("treewright")


def unlock(run_dir: Path) -> None:
    """Lets the records of a run be read and written by their owner; for whoever is about to open
    it. Changes nothing of what they say. A run whose directory is read-only stays as it is."""
    for name in _RECORDS:
        untrusted.unlock(run_dir / name)


def take_back(run_dir: Path, *below: Path) -> None:
    """Lets the search write to its places again, and to the directories `below` them, each of
    which lies in the one before."""
    untrusted.unlock(run_dir)
    unlock(run_dir)
    for name in _DIRECTORIES:
        _mention_link(run_dir / name)
        untrusted.take_back_directory(run_dir / name)
    for directory in below:
        untrusted.take_back_directory(directory)
    for name in _DERIVED:
        untrusted.remove_unless_file(run_dir / name)


def _mention_link(path: Path) -> None:
    """Who moved a directory to another disk and left a link is told where its files are."""
    with contextlib.suppress(OSError):
        if path.is_symlink():
            _log.warning(
                "%s was a link to %r, which a place of a run must not be; it was removed, and what "
                "it leads to was left as it is",
                path,
                str(path.readlink()),
            )
