"""Markdown with escaped text: no text from a run is interpreted as markup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
    | {character: f"\\{character}" for character in "\\`*_[]|~$"}
)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def escape(text: object, limit: int = 200) -> str:
    """Return one line of plain text, safe in a table cell or after other text."""
    return one_line(str(text), limit).translate(_ESCAPES)


def code(text: object, limit: int = 200) -> str:
    """Return a code span that no backtick inside can close; pipes are safe in tables."""
    line = one_line(str(text), limit)
    if not line:
        return ""
    longest = max(map(len, re.findall(r"`+", line)), default=0) if "`" in line else 0
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    if r"\|" in line:  # in a table a backslash escapes a pipe
        return f"<code>{line.translate(_ESCAPES)}</code>"
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", r"\|")


def one_line(text: str, limit: int = 200) -> str:
    """Return a text as one line of limited length, without control or unpaired characters."""
    if len(text) <= limit and text.isprintable() and "  " not in text:
        return text.strip()
    shown = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in text[: 8 * limit])
    line = " ".join(shown.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: str = "") -> str:
    """A pipe table. `right` has an `r` for each column of numbers, other letters for text."""
    aligned = right.ljust(len(header), "l")
    rule = ["---:" if kind == "r" else "---" for kind in aligned[: len(header)]]
    lines = [_row(header), _row(rule), *(_row(row) for row in rows)]
    return "\n".join(lines)


def link(label: str, path: str) -> str:
    """Return a link to a file of the run, by its relative path."""
    target = "".join(c if _PLAIN_IN_URL.fullmatch(c) else _percent(c) for c in path)
    return f"[{escape(label)}]({target})"


_PLAIN_IN_URL = re.compile(r"[A-Za-z0-9._/-]")


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
