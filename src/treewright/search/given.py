"""What callers give, as it will be read back: nothing gets into a journal that cannot be read.

A line goes through JSON before it counts, in memory as on disk, so that what a policy and an
evaluation see is the same before and after a crash.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from treewright.kernel.errors import UsageError
from treewright.kernel.text import jsontext
from treewright.search import records

L = TypeVar("L", bound=records.Line)
F = TypeVar("F")

_SPARE_DEPTH = 400
"""How much deeper in calls than the writer a reader may be: Python counts both together."""
_encode = msgspec.json.Encoder().encode
_decode = jsontext.decoder(records.Line)


def as_read(line: L) -> L:
    """The line as a later process will read it, or UsageError."""
    try:
        encoded = _encode(line)
        _check_depth(encoded)
        return _decode(encoded)
    except msgspec.ValidationError as error:
        raise UsageError(f"{records.name_of(line)}: {error}") from None
    except (TypeError, ValueError, RecursionError, msgspec.DecodeError) as error:
        raise UsageError(f"data is written as JSON, and this cannot be: {error}") from None


def as_json(data: Any) -> Any:
    """Data as it will be read back."""
    if data is None or type(data) is bool:
        return data
    return as_read(records.Told(number=0, score=0.0, data=data)).data


def in_words(reason: object) -> str:
    """A reason as text that can be written: also that of an exception, and with any character."""
    if reason is None:
        return ""
    text = f"{type(reason).__name__}: {reason}" if isinstance(reason, Exception) else str(reason)
    return text.encode(errors="backslashreplace").decode()


def prior(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise UsageError(f"a prior is a finite number, not negative: not {value!r}")
    return float(value)


def workers(number: int) -> None:
    if type(number) is not int or number < 1:
        raise UsageError(f"workers is a whole number, at least 1: not {number!r}")


def timeout(seconds: float | None) -> None:
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
        raise UsageError(f"timeout is a number of seconds, not negative: not {seconds!r}")


def callbacks(functions: Iterable[F]) -> tuple[F, ...]:
    if callable(functions) or not isinstance(functions, Iterable):
        raise UsageError("callbacks are several functions: write [...] around it")
    return tuple(functions)


def budget(evaluations: int | None) -> int | None:
    if evaluations is None:
        return None
    if type(evaluations) is not int or evaluations < 0:
        raise UsageError(f"budget is a whole number, not negative: not {evaluations!r}")
    return evaluations


def _check_depth(encoded: bytes) -> None:
    if encoded.count(b"[") + encoded.count(b"{") > _SPARE_DEPTH:
        jsontext.decode(b"[" * _SPARE_DEPTH + encoded + b"]" * _SPARE_DEPTH)
