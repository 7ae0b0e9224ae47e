"""ByT5's vocabulary: the bytes of UTF-8 moved up by three special tokens."""

from __future__ import annotations

PAD, END, UNKNOWN = 0, 1, 2
_OFFSET = 3
_BYTES = 256


def encode(text: str, limit: int | None = None) -> list[int]:
    """Return the ids of a text with the end mark, at most the last `limit` ids."""
    ids = [byte + _OFFSET for byte in text.encode("utf-8")] + [END]
    return ids if limit is None else ids[-limit:]


def decode(ids: list[int]) -> str:
    """Return the text of ids without special tokens; broken UTF-8 is replaced."""
    data = bytes(i - _OFFSET for i in ids if _OFFSET <= i < _OFFSET + _BYTES)
    return data.decode("utf-8", "replace")
