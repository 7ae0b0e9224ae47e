"""Short answers: texts are clipped, lists come in pages, and what is left out is counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict, TypeVar

import msgspec

LONGEST_TEXT = 1_000_000
"""Of a text that a client sends, in characters; of a file, in bytes."""
LONGEST_SHOWN = 4_000
MOST_ITEMS = 200
T = TypeVar("T")

Text = Annotated[str, msgspec.Meta(max_length=LONGEST_TEXT)]
Name = Annotated[str, msgspec.Meta(max_length=1_000)]
PathText = Annotated[
    str, msgspec.Meta(max_length=4_000, description="A path inside the server's roots.")
]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MOST_ITEMS, description="At most so many entries.")]
Offset = Annotated[
    int, msgspec.Meta(ge=0, le=10**9, description="Skip so many: an answer's `next_offset`.")
]


def clipped(text: str, longest: int = LONGEST_SHOWN) -> str:
    """The beginning, with a count of the rest."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text) - longest} more characters)"


class Rest(TypedDict):
    """How many entries are not on a page, and where the next one begins."""

    left_out: int
    next_offset: int | None


def page(items: Sequence[T], offset: int, limit: int) -> tuple[list[T], Rest]:
    shown = list(items[offset : offset + limit])
    return shown, rest_of(len(items), offset, len(shown))


def rest_of(total: int, offset: int, shown: int) -> Rest:
    end = offset + shown
    return Rest(left_out=total - shown, next_offset=end if end < total else None)
