"""Keeping numpy's OpenBLAS to one thread for a while.

Its threads spin while they wait for each other. On a machine that somebody else is using that
makes small products ten times slower; whole batches side by side use the cores better. Where
numpy brings another BLAS, or none we can reach, nothing changes.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

_PLACES = ("../numpy.libs", ".dylibs")
_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads")


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
    getter, setter = functions
    before = getter()
    setter(1)
    try:
        yield
    finally:
        setter(before)
