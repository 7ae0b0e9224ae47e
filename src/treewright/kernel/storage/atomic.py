"""Atomic files: after a crash a file has either its old or its new content, never half of each.

A write is: temporary file in the same directory -> write -> fsync -> rename -> fsync(directory).
A crash leaves at most a temporary file, which `sweep_temporaries` removes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from treewright.kernel.errors import StorageError
from treewright.kernel.operating_system import BINARY, CAN_SYNC_DIRECTORIES, IS_POSIX

_TEMP_PREFIX = ".tw-tmp-"
_FULL_BELOW_BYTES = 1 << 20
_SYNCS_AT_ONCE = 8
_REPLACE_PATIENCE_SECONDS = 2.0
_REPLACE_POLL_SECONDS = 0.01


def describe(error: OSError, path: Path) -> StorageError:
    """Return an I/O error on a file of a run as a one-line error."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(
            f"no space left while writing {path}; free some and run the same command again: "
            "what was recorded before is kept"
        )
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return StorageError(f"cannot write {path}: {error.strerror}; make the directory writable")
    return StorageError(f"cannot write {path}: {error.strerror or error}")


def is_full(path: Path) -> bool:
    """Return whether the file system is so full that a failure may be due to that."""
    if not hasattr(os, "statvfs"):
        return shutil.disk_usage(path).free < _FULL_BELOW_BYTES
    found = os.statvfs(path)
    no_inodes = found.f_files > 0 and found.f_favail == 0
    return found.f_bavail * found.f_frsize < _FULL_BELOW_BYTES or no_inodes


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn OSErrors of the block into a StorageError that names `path`."""
    try:
        yield
    except OSError as error:
        raise describe(error, path) from error


def fsync_directory(path: Path) -> None:
    """Make renames and new files in a directory durable, where the system can open it."""
    if not CAN_SYNC_DIRECTORIES:
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes to a descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _write_temporary(directory: Path, data: bytes, mode: int = 0o644) -> tuple[Path, int]:
    """Write a temporary file; return its path and a descriptor for reading and appending."""
    temp = directory / f"{_TEMP_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    fd = os.open(temp, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | BINARY, mode)
    try:
        write_all(fd, data)
        os.fsync(fd)
    except BaseException:
        os.close(fd)
        with contextlib.suppress(OSError):
            temp.unlink()
        raise
    return temp, fd


def write_bytes(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace `path` with `data` durably."""
    with storage_errors(path):
        temp, fd = _write_temporary(path.parent, data, mode)
        os.close(fd)
        _replace(temp, path)


def write_and_keep_open(path: Path, data: bytes, mode: int = 0o644) -> int:
    """Replace `path` with `data` durably; return a descriptor for reading and appending.

    On POSIX the descriptor belongs to the file that was written. Windows cannot rename an open
    file, so the file is opened again by its name there.
    """
    if not IS_POSIX:
        write_bytes(path, data, mode)
        with storage_errors(path):
            return os.open(path, os.O_RDWR | os.O_APPEND | BINARY)
    with storage_errors(path):
        temp, fd = _write_temporary(path.parent, data, mode)
        try:
            _replace(temp, path)
        except BaseException:
            os.close(fd)
            raise
        return fd


def _replace(temp: Path, path: Path) -> None:
    """Rename a temporary file durably; remove it if that fails."""
    try:
        rename(temp, path)
        fsync_directory(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            temp.unlink()
        raise


def rename(source: Path, target: Path) -> None:
    """Rename a file, also onto an existing one.

    Windows refuses while another process has the target open. Readers close it soon, so the rename
    is tried again for a while.
    """
    deadline = time.monotonic() + _REPLACE_PATIENCE_SECONDS
    while True:
        try:
            source.replace(target)
            return
        except PermissionError:
            if IS_POSIX or time.monotonic() > deadline:
                raise
            time.sleep(_REPLACE_POLL_SECONDS)


def write_text(path: Path, text: str) -> None:
    """Replace `path` with a text durably."""
    write_bytes(path, text.encode("utf-8"))


def write_if_changed(path: Path, text: str) -> None:
    """Replace `path` with a text durably, unless the file has that text already."""
    data = text.encode("utf-8")
    if not (path.is_file() and path.read_bytes() == data):
        write_bytes(path, data)


def write_many(directory: Path, files: Mapping[str, bytes]) -> None:
    """Replace several files of a directory durably, each atomically.

    The files are synced at the same time, so that the file system can commit them together. For a
    hundred small files that is several times faster than one sync after the other.
    """
    if not files:
        return
    with storage_errors(directory), ExitStack() as stack:
        temporaries = {}
        opened = stack.enter_context(ExitStack())
        descriptors = []
        for name, data in files.items():
            temp = directory / f"{_TEMP_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
            fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o644)
            stack.callback(temp.unlink, missing_ok=True)
            opened.callback(os.close, fd)
            write_all(fd, data)
            temporaries[name] = temp
            descriptors.append(fd)
        with ThreadPoolExecutor(min(_SYNCS_AT_ONCE, len(files))) as pool:
            list(pool.map(lambda fd: os.fsync(fd), descriptors))
        opened.close()  # Windows renames no open file
        for name, temp in temporaries.items():
            rename(temp, directory / name)
        fsync_directory(directory)


def create_exclusive(path: Path, data: bytes, mode: int = 0o644) -> bool:
    """Create `path` durably and atomically; return False if it exists already."""
    with storage_errors(path):
        temp, fd = _write_temporary(path.parent, data, mode)
        os.close(fd)
        try:
            os.link(temp, path)
        except (FileExistsError, FileNotFoundError):
            return False  # another process created it, and may have swept the temporary file
        finally:
            temp.unlink(missing_ok=True)
        fsync_directory(path.parent)
    return True


def make_directory(path: Path) -> None:
    """Create a directory and its parents durably."""
    with storage_errors(path):
        made = [level for level in (path, *path.parents) if not level.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for level in reversed(made):
            fsync_directory(level.parent)


def is_temporary(name: str) -> bool:
    """Return whether a file name is that of a temporary file of this module."""
    return name.startswith(_TEMP_PREFIX)


def sweep_temporaries(directory: Path, *, older_seconds: float | None = None) -> None:
    """Remove temporary files that a killed writer left in `directory`, but not below it.

    If other processes may be writing there, `older_seconds` spares their files.
    """
    for leftover in directory.glob(f"{_TEMP_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):
            if older_seconds is None or time.time() - leftover.lstat().st_mtime > older_seconds:
                leftover.unlink()
