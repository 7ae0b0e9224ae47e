"""Keeping numpy's OpenBLAS to one thread for a while.

Its threads spin while they wait for each other. On a machine that somebody else is using that
makes small products ten times slower; whole batches side by side use the cores better. Where
numpy brings another BLAS, or none we can reach, nothing changes.

The number is one for the whole process, so those who want it to be 1 are counted: the first sets
it, the last puts back what was there.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_PLACES = ("../numpy.libs", ".dylibs")
_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads")


_lock = threading.Lock()
_users = 0
_before = 0


@cache
def _library() -> tuple[Any, Any] | None:
    """The functions that tell and set the number of threads."""
    package = Path(np.__file__).parent
    for file in (f for place in _PLACES for f in (package / place).glob("*openblas*")):
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(str(file))
            for name in _NAMES:
                getter = getattr(library, name.format("get"), None)
                setter = getattr(library, name.format("set"), None)
                if getter and setter:
                    return getter, setter
    return None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Products inside the block run in the thread that asks for them."""
    functions = _library()
    if functions is None:
        yield
        return
    _enter(*functions)
    try:
        yield
    finally:
        _leave(functions[1])


def _enter(getter: Any, setter: Any) -> None:
    global _users, _before
    with _lock:
        if _users == 0:
            _before = getter()
            setter(1)
        _users += 1


def _leave(setter: Any) -> None:
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            setter(_before)
