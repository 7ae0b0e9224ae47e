"""JSON from outside: limited in size, with one exception for every kind of error.

A text of two hundred thousand `[` makes msgspec raise a RecursionError. Here it is a DecodeError
like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec

MOST_BYTES = 1 << 30
T = TypeVar("T")


@overload
def decode(data: bytes | str, *, most: int = ...) -> Any: ...
@overload
def decode(data: bytes | str, type: type[T], *, most: int = ...) -> T: ...
def decode(data: bytes | str, type: Any = Any, *, most: int = MOST_BYTES) -> Any:
    """Return the decoded document.

    Args:
        data: The document.
        type: The type to decode to.
        most: The largest size in bytes.

    Raises:
        msgspec.DecodeError: The document is invalid, too large or nested too deeply.
    """
    return _guarded(lambda text: msgspec.json.decode(text, type=type), data, most)


@overload
def decoder(type: type[T], *, most: int = ...) -> Callable[[bytes | str], T]: ...
@overload
def decoder(type: Any, *, most: int = ...) -> Callable[[bytes | str], Any]: ...
def decoder(type: Any, *, most: int = MOST_BYTES) -> Callable[[bytes | str], Any]:
    """Return a function that decodes documents of one type; see `decode`."""
    read = msgspec.json.Decoder(type).decode
    return lambda data: _guarded(read, data, most)


def _guarded(read: Callable[[bytes | str], T], data: bytes | str, most: int) -> T:
    if len(data) > most:
        raise msgspec.DecodeError(f"JSON of more than {most:,} bytes")
    try:
        return read(data)
    except RecursionError:
        raise msgspec.DecodeError("JSON is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"JSON is not UTF-8 (byte {error.start})") from None
