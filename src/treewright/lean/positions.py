"""A `sorry` where somebody points in a text, so that Lean shows the goals of that place.

The rest of the tactic block from there on is left out: every following line that stands as far to
the right. Lean's own layout rule ends a block the same way.
"""

from __future__ import annotations

from treewright.kernel.errors import UsageError

_SORRY = "sorry"


def with_sorry_at(source: str, line: int, column: int | None = None) -> tuple[str, int]:
    """The text with a `sorry` at a place, and the byte where it begins.

    Lines and columns count from 1. Without a column it is the first one of the line that is not
    blank, or on a blank line, where the last line above begins.
    """
    lines = source.replace("\r\n", "\n").split("\n")
    if not 1 <= line <= len(lines):
        raise UsageError(f"the text has no line {line}: it has {len(lines)}")
    if column is None:
        shown = lines[line - 1]
        above = next((each for each in reversed(lines[: line - 1]) if each.strip()), "")
        margin = _margin(shown if shown.strip() else above)
    else:
        margin = column - 1
    here = lines[line - 1].ljust(margin)
    if margin < 0 or (column is not None and margin > len(lines[line - 1]) + 1):
        raise UsageError(f"line {line} has no column {column}: it has {len(lines[line - 1])}")
    head = lines[: line - 1]
    rest = lines[line:]
    while rest and (not rest[0].strip() or _margin(rest[0]) >= max(margin, 1)):
        rest.pop(0)
    before = "\n".join([*head, here[:margin]])
    return "\n".join([before + _SORRY, "", *rest]), len(before.encode())


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
