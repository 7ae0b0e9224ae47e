"""A lock file that one thread of one process holds at a time.

The lock belongs to an open file: the system releases it when its process ends, however it ends,
and no child inherits it. A file system without such locks is an error, never a weaker lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

_POLL_SECONDS = 0.01


@contextlib.contextmanager
def holding(path: Path, *, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock `path` for the block; its file stays.

    Args:
        path: The lock file, made if it is not there. Its directory must exist.
        on_wait: Called once if another thread or process holds the lock; may raise not to wait.

    Raises:
        OSError: The file cannot be made or opened, or its file system has no locks.
    """
    import filelock  # imported here: it takes 15 ms, and few commands take a lock

    if not path.parent.is_dir():  # filelock would create it, even for a repository that was removed
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    lock = filelock.FileLock(
        path, poll_interval=_POLL_SECONDS, fallback_to_soft=False, preserve_lock_file=True
    )
    try:
        lock.acquire(blocking=False)
    except filelock.Timeout:
        on_wait()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()
