"""Keeping numpy's BLAS to one thread for a while.

Its threads spin while they wait for each other. On a machine that somebody else is using that
makes small products ten times slower; whole batches side by side use the cores better. Where
numpy brings no BLAS that can be told, nothing changes.

The number is one for the whole process, so those who want it to be 1 are counted: the first sets
it, the last puts back what was there. Both is done by a thread that lives in between, because
threadpoolctl lets only the thread that set a limit take it back.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy  # noqa: F401  (its BLAS has to be loaded before it can be found)

from treewright.kernel.errors import MissingExtra

_lock = threading.Lock()
_users = 0
_holder: _Holder | None = None


@cache
def _libraries() -> Any:
    """Every BLAS of this process, looked for once: numpy's does not change."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        raise MissingExtra("a model in numpy", "premises") from None
    return ThreadpoolController().select(user_api="blas")


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Products inside the block run in the thread that asks for them."""
    _enter()
    try:
        yield
    finally:
        _leave()


class _Holder(threading.Thread):
    """Holds the limit from `start` to `release`."""

    def __init__(self, libraries: Any) -> None:
        super().__init__(name="one-blas-thread", daemon=True)
        self._libraries = libraries
        self.holding = threading.Event()
        self._released = threading.Event()

    def run(self) -> None:
        try:
            with self._libraries.limit(limits=1):
                self.holding.set()
                self._released.wait()
        finally:
            self.holding.set()

    def release(self) -> None:
        self._released.set()
        self.join()


def _enter() -> None:
    global _users, _holder
    with _lock:
        if _users == 0:
            _holder = _Holder(_libraries())
            _holder.start()
            _holder.holding.wait()
        _users += 1


def _leave() -> None:
    global _users, _holder
    with _lock:
        _users -= 1
        if _users == 0 and _holder is not None:
            _holder.release()
            _holder = None
