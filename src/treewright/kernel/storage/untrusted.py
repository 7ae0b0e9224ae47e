"""Files that code under test has written, or may have replaced.

A results file, a log or an idea may be a pipe that never ends, a link to a device, or larger than
the memory. So such a file is opened without waiting and without following a link, must be a regular
file, and is read only up to a limit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from treewright.kernel.operating_system import (
    BINARY,
    CLOSE_ON_EXEC,
    IS_POSIX,
    NO_FOLLOW,
    NON_BLOCK,
)
from treewright.kernel.procs.proctree import HAS_PROC

LARGEST_RESULTS = 256 << 20
LARGEST_TEXT = 16 << 20


class NotPlain(OSError):
    """A path that is not a regular file of an allowed size. The message names its kind."""


def read(path: Path, largest: int, inside: Path | None = None) -> bytes:
    """Return the content of a regular file.

    Args:
        path: The file.
        largest: The largest size that is allowed.
        inside: A directory that contains the file; links on the path must not lead out of it.

    Raises:
        NotPlain: The path is not such a file.
        FileNotFoundError: There is no such file.
    """
    fd, size = _open(path, largest, inside)
    try:
        data = os.read(fd, size + 1)
        if len(data) != size:  # the file is changed while it is read
            with os.fdopen(fd, "rb", closefd=False) as file:
                data += file.read(largest + 1 - len(data))
    finally:
        os.close(fd)
    if len(data) > largest:
        raise NotPlain(_too_large(path, largest))
    return data


def open_plain(path: Path, largest: int, inside: Path | None = None) -> BinaryIO:
    """Open a regular file of at most `largest` bytes; see `read`."""
    return os.fdopen(_open(path, largest, inside)[0], "rb")


def _open(path: Path, largest: int, inside: Path | None) -> tuple[int, int]:
    """Return a descriptor of the file, and its size."""
    try:
        if not NO_FOLLOW and path.is_symlink():
            raise NotPlain(f"{path.name} is a symbolic link, not a file")
        fd = os.open(path, os.O_RDONLY | BINARY | NO_FOLLOW | NON_BLOCK | CLOSE_ON_EXEC)
    except (NotPlain, FileNotFoundError):
        raise
    except OSError as error:
        if path.is_symlink():
            raise NotPlain(f"{path.name} is a symbolic link, not a file") from None
        raise NotPlain(f"{path.name} cannot be read: {error.strerror}") from None
    try:
        is_inside = inside is None or _is_below(fd, path, inside)
    except OSError as error:  # not FileNotFoundError, because the file exists
        os.close(fd)
        where = "the directory it should be in"
        raise NotPlain(f"{path.name}: {where} cannot be read: {error.strerror}") from None
    if not is_inside:
        os.close(fd)
        raise NotPlain(f"{path.name} is reached through a link that leads outside")
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
        os.close(fd)
        if stat.S_ISREG(found.st_mode):
            raise NotPlain(_too_large(path, largest))
        raise NotPlain(f"{path.name} is {_kind(found.st_mode)}, not a file")
    return fd, found.st_size


def _is_below(fd: int, path: Path, inside: Path) -> bool:
    """Return whether an open file is in a directory, with links resolved.

    On Linux /proc has both paths; elsewhere every directory on the path is resolved.
    """
    if not HAS_PROC:
        return path.parent.resolve().is_relative_to(inside.resolve())
    directory = os.open(inside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        there = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - called often
        around = os.readlink(f"/proc/self/fd/{directory}")  # noqa: PTH115
    except OSError:
        return path.parent.resolve().is_relative_to(inside.resolve())
    finally:
        os.close(directory)
    return there.startswith(around.rstrip("/") + "/")


def create(path: Path) -> BinaryIO:
    """Open a new, empty file for writing, in place of any file, link or directory of that name.

    A pipe would block the writer, a link would redirect it. A device stays and is written to: only
    the owner of the machine can create one.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY | NO_FOLLOW | CLOSE_ON_EXEC
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            flags = os.O_WRONLY | BINARY | NO_FOLLOW | NON_BLOCK | CLOSE_ON_EXEC
        elif stat.S_ISDIR(mode):
            remove_tree(path)
        else:
            path.unlink()
    return os.fdopen(os.open(path, flags, 0o644), "wb")


def remove_tree(path: Path) -> None:
    """Remove a file, or a directory with everything in it, whatever its depth and its names.

    `rm` uses names relative to open directories, so neither the depth nor the length of a path is a
    limit. Files that cannot be removed stay; a caller that needs the path checks it.
    """
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not path.is_dir():
        with contextlib.suppress(OSError):
            path.unlink()
            return
    if not IS_POSIX:
        _remove_portably(path)
        return
    for attempt in range(2):
        _run_silently("rm", "-rf", "--", str(path))
        if attempt or not os.path.lexists(path):
            return
        # A directory that its owner made unreadable can be made readable by its owner.
        _run_silently("chmod", "-R", "u+rwX", "--", str(path))


def _run_silently(*command: str, **options: Any) -> int:
    """Run a command without input and output; return its exit code."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
        start_new_session=True,
        **options,
    ).returncode


def _remove_portably(path: Path) -> None:
    """Remove a directory without `rm`, making write-protected files (git's objects) writable first.

    Files that another process has open stay.
    """

    def make_writable(remove: Callable[[str], object], name: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            Path(name).chmod(stat.S_IWRITE | stat.S_IREAD)
            remove(name)

    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(path, onerror=make_writable)


def remove_small_tree(path: Path) -> None:
    """Remove a directory that has few files, without starting a process if possible."""
    if path.is_dir():  # not for a pipe, at which rmtree would wait
        with contextlib.suppress(OSError, RecursionError):
            shutil.rmtree(path)
    remove_tree(path)


def restore_access(path: Path) -> None:
    """Give the owner access to a file or directory again. A link stays as it is."""
    with contextlib.suppress(OSError):  # missing, or of another user; the caller reports it
        mode = path.lstat().st_mode
        needed = stat.S_IRWXU if stat.S_ISDIR(mode) else stat.S_IRUSR | stat.S_IWUSR
        if mode & needed != needed and (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            path.chmod(stat.S_IMODE(mode) | needed)


def reclaim_directory(path: Path) -> None:
    """Prepare a path for a directory: remove a file or a link, and restore access to a directory.

    A directory is never removed: another process may have created it a moment ago.
    """
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(path.lstat().st_mode):
            restore_access(path)
        else:
            path.unlink()


def remove_unless_file(path: Path) -> None:
    """Remove a path that is not a regular file, such as a directory or a pipe."""
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(path.lstat().st_mode):
            remove_tree(path)


def remove_named(name: str, below: Path) -> bool:
    """Remove every file or directory of that name in the directories below `below`.

    Returns:
        Whether none is left.
    """
    if not IS_POSIX:
        for found in [path for path in below.rglob(name) if path.parent != below]:
            remove_tree(found)
        return not any(path.parent != below for path in below.rglob(name))
    search_path = [entry for entry in os.get_exec_path() if entry.startswith("/")]
    found = ("find", ".", "-mindepth", "2", "-name", name)
    for command in (
        (*found, "-prune", "-execdir", "rm", "-rf", "--", "{}", "+"),
        # The owner of a directory can restore its own access.
        ("chmod", "-R", "u+rwX", "."),
        (*found, "-prune", "-execdir", "rm", "-rf", "--", "{}", "+"),
    ):
        code = _run_silently(*command, cwd=below, env={"PATH": os.pathsep.join(search_path)})
        if command[0] == "find" and code == 0:
            return True
    return False


def _too_large(path: Path, largest: int) -> str:
    return f"{path.name} is larger than {largest >> 20} MiB"


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"
