"""Limiting numpy's BLAS to one thread for a while.

The threads of a BLAS spin while they wait for each other. On a machine that other programs are
using, that makes small products ten times slower; whole batches side by side use the cores better.
If numpy has no BLAS that `threadpoolctl` knows, the limit changes nothing.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy  # noqa: F401  (threadpoolctl finds only libraries that are loaded)

from treewright.kernel.errors import MissingExtra

_lock = threading.Lock()
_users = 0
_limit: Any = None


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Compute products inside the block in the thread that asks for them.

    The limit holds for the whole process: the first of several overlapping blocks sets it, the last
    one restores the number from before.
    """
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _libraries().limit(limits=1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _restore()


def _restore() -> None:
    """Restore the number of threads, whichever thread set the limit.

    threadpoolctl lets only one thread at a time change OpenBLAS, so this thread takes over first.
    """
    from threadpoolctl import OpenBLASController

    OpenBLASController.clear_controlling_thread(force=True)
    _limit.restore_original_limits()
    OpenBLASController.clear_controlling_thread()


@cache
def _libraries() -> Any:
    """Return every BLAS of this process."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        raise MissingExtra("a model in numpy", "premises") from None
    return ThreadpoolController().select(user_api="blas")
