"""Numbers in addresses: Python itself refuses to convert very long ones, with an exception."""

from __future__ import annotations

_MOST_DIGITS = 18
"""What fits in 64 bits: more than any offset or index of ours."""


def whole(text: str) -> int | None:
    """The number that the text is; None if it is none, or an absurdly long one."""
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None
