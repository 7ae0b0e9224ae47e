"""A socket in the file system that only its user can open, and who is at the other end.

The directory is the user's own with mode 0700, the socket has 0600, and both sides ask the kernel
for the user of the other. Addresses go through a descriptor of the directory: a path may be longer
than the 107 bytes that an address has.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

from treewright.kernel.errors import StorageError, UsageError
from treewright.kernel.procs.proctree import HAS_PROC
from treewright.kernel.storage import atomic

_CREDENTIALS = struct.Struct("iII")  # process, user, group


def is_supported() -> bool:
    """Whether this is Linux, which says who is at the other end and has addresses by descriptor.
    Elsewhere nothing is served: every call starts its own Lean."""
    return hasattr(socket, "SO_PEERCRED") and HAS_PROC


def make_private(directory: Path) -> None:
    """Makes the directory, or insists that the one that is there is nobody else's."""
    atomic.make_directory(directory.parent)
    with atomic.storage_errors(directory), contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    with _descriptor(directory):
        pass


@contextlib.contextmanager
def _descriptor(directory: Path) -> Iterator[int]:
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise StorageError(f"cannot open {directory}: {error.strerror}") from None
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o077:
            raise UsageError(
                f"{directory} is open to others; nothing is sent through it: "
                f"chmod 700 {directory}, or remove it if it is not yours"
            )
        yield descriptor
    finally:
        os.close(descriptor)


def listen(directory: Path, name: str) -> socket.socket:
    """A socket under that name; one that nobody listens at any more is replaced."""
    with _descriptor(directory) as descriptor, atomic.storage_errors(directory / name):
        (directory / name).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            before = os.umask(0o177)
            try:
                listening.bind(f"/proc/self/fd/{descriptor}/{name}")
            finally:
                os.umask(before)
            listening.listen()
        except BaseException:
            listening.close()
            raise
    return listening


def connect(directory: Path, name: str, seconds: float) -> socket.socket | None:
    """A connection to whoever listens there; None if nobody does.

    Raises UsageError if another user could be at the other end.
    """
    if not is_supported() or not (directory / name).exists():
        return None
    with _descriptor(directory) as descriptor:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(seconds)
        try:
            connection.connect(f"/proc/self/fd/{descriptor}/{name}")
        except OSError:
            connection.close()
            return None
    if peer(connection)[1] != os.geteuid():
        connection.close()
        raise UsageError(f"another user listens at {directory / name}; remove it")
    return connection


def peer(connection: socket.socket) -> tuple[int, int]:
    """The process and the user at the other end, as the kernel knows them."""
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, user, _ = _CREDENTIALS.unpack(found)
    return process, user
