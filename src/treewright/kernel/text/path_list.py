"""Paths in messages: a few of them, on one line of text."""

from __future__ import annotations

import os
from collections.abc import Sequence

_SHOWN = 3


def format_paths(paths: Sequence[str]) -> str:
    """Return the first three paths and the number of the others.

    A path may hold any bytes: those that are not printable are escaped.
    """
    shown = ", ".join(map(_as_text, paths[:_SHOWN]))
    return f"{shown} and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else shown


def _as_text(path: str) -> str:
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
