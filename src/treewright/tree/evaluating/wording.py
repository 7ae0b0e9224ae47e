"""Sentences about what went wrong with a candidate."""

from __future__ import annotations

import os
from pathlib import Path

from treewright.kernel.procs.capped_log import last_lines
from treewright.kernel.procs.process import ProcessResult
from treewright.kernel.storage import atomic, untrusted
from treewright.kernel.storage.run_directory import STATE_DIR
from treewright.tree.repository.worktrees import Worktrees

_LAST_BYTES = 4096
_LARGEST_LOG = 1 << 40
_FAILED_LOGS = "failed_logs"
_SHOWN = 3


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


def some_of(paths: list[str]) -> str:
    """The first few, and how many more there are. A name is any bytes but for two: here on one
    line of text."""
    shown = ", ".join(map(_as_text, paths[:_SHOWN]))
    return f"{shown} and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else shown


def _as_text(path: str) -> str:
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
