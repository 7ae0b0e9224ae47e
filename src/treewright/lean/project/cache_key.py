"""The key that seals entries of the module cache, in the user's state directory.

The key is not in the cache: a program that can only write to the cache cannot add a valid entry.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from treewright.kernel.errors import StorageError
from treewright.kernel.storage import atomic
from treewright.kernel.storage.user_directories import state_directory

NAME = "module-cache.key"
_BYTES = 32


def user_secret() -> bytes:
    """The key, made if there is none; StorageError if none can be kept from others."""
    path = state_directory() / NAME
    with atomic.storage_errors(path):
        if (found := _private(path)) is not None:
            return found
        atomic.make_directory(path.parent)
        fresh = secrets.token_bytes(_BYTES)
        if not atomic.create_exclusive(path, fresh, 0o600) and _private(path) is None:
            atomic.write_bytes(path, fresh, 0o600)  # it is damaged, or others could read it
        if (found := _private(path)) is not None:  # another process may have written it first
            return found
    raise StorageError(f"{path} cannot be kept from other users")


def _private(path: Path) -> bytes | None:
    """Return the key if its file can be read and written by this user only, else None."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(descriptor)
        mine = about.st_uid == os.getuid() and not about.st_mode & 0o077
        data = file.read(_BYTES + 1) if stat.S_ISREG(about.st_mode) and mine else b""
    return data if len(data) == _BYTES else None
