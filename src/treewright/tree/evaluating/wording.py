"""Sentences about what went wrong with a candidate."""

from __future__ import annotations

import os
from pathlib import Path

from treewright.kernel import untrusted
from treewright.kernel.process import ProcessResult

_LAST_BYTES = 4096
_LARGEST_LOG = 1 << 40
_LONGEST_QUOTE = 160
_SHOWN = 3


def explain_end(done: ProcessResult, what: str, log: Path) -> str:
    """How a command ended, with the last line it said."""
    said = last_line(log)
    return done.explain(what) + (f": {said}" if said else "")


def last_line(log: Path) -> str:
    """Of what a command said, as much as fits into a message."""
    lines = end_of(log).decode("utf-8", "replace").split("\n")
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return said[:_LONGEST_QUOTE]


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
