"""Limits on arguments and answers: texts are clipped, and lists are returned in pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict, TypeVar

import msgspec

MAX_TEXT = 1_000_000
"""Longest text that a client may send, in characters, and largest file, in bytes."""
MAX_SHOWN = 4_000
MAX_ITEMS = 200
T = TypeVar("T")

Text = Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
Name = Annotated[str, msgspec.Meta(max_length=1_000)]
PathText = Annotated[
    str, msgspec.Meta(max_length=4_000, description="A path inside the server's roots.")
]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_ITEMS, description="Most entries in the answer.")]
Offset = Annotated[
    int,
    msgspec.Meta(
        ge=0, le=10**9, description="Entries to skip: 0, or `next_offset` of an earlier answer."
    ),
]


def clipped(text: str, longest: int = MAX_SHOWN) -> str:
    """Return the beginning of a text, with the number of the characters left out."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text) - longest} more characters)"


class Rest(TypedDict):
    """The number of entries that are not on a page, and the offset of the next page."""

    left_out: int
    next_offset: int | None


def page(items: Sequence[T], offset: int, limit: int) -> tuple[list[T], Rest]:
    """Return the entries of one page, and what remains."""
    shown = list(items[offset : offset + limit])
    return shown, rest_of(len(items), offset, len(shown))


def rest_of(total: int, offset: int, shown: int) -> Rest:
    end = offset + shown
    return Rest(left_out=total - shown, next_offset=end if end < total else None)
