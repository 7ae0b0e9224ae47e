"""Sentences about what went wrong with a candidate."""

from __future__ import annotations

from pathlib import Path

from treewright.kernel.procs.capped_log import last_lines
from treewright.kernel.procs.process import ProcessResult
from treewright.kernel.storage import atomic, untrusted
from treewright.kernel.storage.run_directory import STATE_DIR
from treewright.tree.repository.worktrees import Worktrees

_LAST_BYTES = 4096
_LARGEST_LOG = 1 << 40
_FAILED_LOGS = "failed_logs"


def explain_end(done: ProcessResult, what: str, log: Path) -> str:
    """How a command ended, with the last lines it said."""
    said = last_words(log)
    return done.explain(what) + (f": {said}" if said else "")


def last_words(log: Path) -> str:
    """The last lines of a command's log, as much as fits into a message."""
    return last_lines(end_of(log).decode("utf-8", "replace"))


def keep_log(trees: Worktrees, log: Path) -> str:
    """Keeps the log of a command that failed on the root: a run that cannot start is removed.
    Returns, for the end of a message, where it is."""
    kept = trees.repo / STATE_DIR / _FAILED_LOGS / f"{trees.run_dir.name}_{log.name}"
    try:
        data = untrusted.read(log, _LARGEST_LOG)
        atomic.make_directory(kept.parent)
        atomic.write_bytes(kept, data)
    except OSError:
        return ""
    return f" (log: {kept})"


def end_of(log: Path) -> bytes:
    """The last of what a command said."""
    try:
        with untrusted.open_plain(log, _LARGEST_LOG) as file:
            file.seek(max(0, file.seek(0, 2) - _LAST_BYTES))
            return file.read(_LAST_BYTES)
    except OSError as error:  # what ran there put something else in its place
        return str(error).encode()
