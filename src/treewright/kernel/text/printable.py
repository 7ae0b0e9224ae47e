"""Text from outside, made safe for a terminal and for messages of one line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_SHOWN = 3
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but for tab and line feed
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # order, invisible
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    r"""Return a text with control, bidirectional and invisible characters escaped (`\u001b`).

    Line feeds and tabs stay. A JSON document stays the same document, because JSON has the same
    escapes.
    """
    return _STEERING.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code > 0xFFFF:  # JSON has only the two halves
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return f"\\u{code:04x}"


def format_paths(paths: Sequence[str]) -> str:
    """Return the first three paths and the number of the others.

    A path may hold any bytes: those that are not printable are escaped.
    """
    shown = ", ".join(map(_as_text, paths[:_SHOWN]))
    return f"{shown} and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else shown


def _as_text(path: str) -> str:
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
