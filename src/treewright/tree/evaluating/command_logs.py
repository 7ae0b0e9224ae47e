"""The logs of tests and sweeps, quoted in error messages."""

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
    """Return how a command ended, with the last lines of its log."""
    said = last_log_lines(log)
    return done.explain(what) + (f": {said}" if said else "")


def last_log_lines(log: Path) -> str:
    """Return the last lines of a log, as many as fit into a message."""
    return last_lines(end_of(log).decode("utf-8", "replace"))


def keep_log(trees: Worktrees, log: Path) -> str:
    """Copy the log of a command that failed on the root, because such a run is removed.

    Returns the path of the copy in brackets, for the end of a message.
    """
    kept = trees.repo / STATE_DIR / _FAILED_LOGS / f"{trees.run_dir.name}_{log.name}"
    try:
        data = untrusted.read(log, _LARGEST_LOG)
        atomic.make_directory(kept.parent)
        atomic.write_bytes(kept, data)
    except OSError:
        return ""
    return f" (log: {kept})"


def end_of(log: Path) -> bytes:
    """Return the last bytes of a log."""
    try:
        with untrusted.open_plain(log, _LARGEST_LOG) as file:
            file.seek(max(0, file.seek(0, 2) - _LAST_BYTES))
            return file.read(_LAST_BYTES)
    except OSError as error:  # the command replaced the log by something else
        return str(error).encode()
