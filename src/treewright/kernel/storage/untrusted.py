"""Files that code we do not trust has written, or could have put something else for.

A results file, a log, an idea may be a pipe that never ends, a link to a device, or
larger than the memory. So such a file is opened without waiting and without following a
link, must be a regular file, and is read up to a size that no honest one has.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

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
    """It is there, but not a regular file of a believable size. The text says what it is."""


def read(path: Path, largest: int, inside: Path | None = None) -> bytes:
    """The whole file. With `inside`, directories on the way may not lead out of it."""
    fd, size = _open(path, largest, inside)
    try:
        data = os.read(fd, size + 1)
        if len(data) != size:  # it changes while it is read
            with os.fdopen(fd, "rb", closefd=False) as file:
                data += file.read(largest + 1 - len(data))
    finally:
        os.close(fd)
    if len(data) > largest:
        raise NotPlain(_too_large(path, largest))
    return data


def open_plain(path: Path, largest: int, inside: Path | None = None) -> BinaryIO:
    """Opens a regular file of at most `largest` bytes; anything else is NotPlain."""
    return os.fdopen(_open(path, largest, inside)[0], "rb")


def _open(path: Path, largest: int, inside: Path | None) -> tuple[int, int]:
    """Descriptor and size."""
    try:
        if not NO_FOLLOW and path.is_symlink():
            raise NotPlain(f"{path.name} is a symbolic link, not a file")
        fd = os.open(path, os.O_RDONLY | BINARY | NO_FOLLOW | NON_BLOCK | CLOSE_ON_EXEC)
    except NotPlain:
        raise
    except FileNotFoundError:
        raise
    except OSError as error:
        if path.is_symlink():
            raise NotPlain(f"{path.name} is a symbolic link, not a file") from None
        raise NotPlain(f"{path.name} cannot be read: {error.strerror}") from None
    try:
        is_inside = inside is None or _is_below(fd, path, inside)
    except OSError as error:  # not that there is no such file: there is one
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
    """Whether an open file is in that directory, links followed. On Linux the kernel says where
    both are; elsewhere every directory on the way is looked at."""
    if not HAS_PROC:
        return path.parent.resolve().is_relative_to(inside.resolve())
    directory = os.open(inside, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        there = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115 - asked all the time
        around = os.readlink(f"/proc/self/fd/{directory}")  # noqa: PTH115
    except OSError:
        return path.parent.resolve().is_relative_to(inside.resolve())
    finally:
        os.close(directory)
    return there.startswith(around.rstrip("/") + "/")


def create(path: Path) -> BinaryIO:
    """A new, empty file in place of whatever has that name: a pipe there would make us wait,
    a link would make us write elsewhere. A device is written to: nobody but the machine's
    owner can have put it there."""
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
    """Removes a directory with all that is in it, or a file, however deep and however named.

    `rm` works with names relative to open directories, so that neither the depth nor the
    length of a path is a limit. What cannot be removed stays; who needs the place asks.
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
        subprocess.run(
            ["rm", "-rf", "--", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            start_new_session=True,
        )
        if attempt or not os.path.lexists(path):
            return
        # A directory that its owner made unreadable can be made readable by its owner.
        subprocess.run(
            ["chmod", "-R", "u+rwX", "--", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            start_new_session=True,
        )


def _remove_portably(path: Path) -> None:
    """Removes a directory without `rm`; a file that is write-protected (git's objects) is made
    writable first. What another process has open stays."""

    def make_writable(remove: Callable[[str], object], name: str, _error: object) -> None:
        with contextlib.suppress(OSError):
            Path(name).chmod(stat.S_IWRITE | stat.S_IREAD)
            remove(name)

    with contextlib.suppress(OSError, RecursionError):
        shutil.rmtree(path, onerror=make_writable)


def remove_small_tree(path: Path) -> None:
    """The same where honest code leaves few files: without a process, unless it is needed."""
    if path.is_dir():  # rmtree would open whatever it is, and wait at a pipe
        with contextlib.suppress(OSError, RecursionError):
            shutil.rmtree(path)
    remove_tree(path)


def unlock(path: Path) -> None:
    """A file or directory of ours that we cannot use is made usable again; a link is left."""
    with contextlib.suppress(OSError):  # not there, or of somebody else: who needs it says so
        mode = path.lstat().st_mode
        needed = stat.S_IRWXU if stat.S_ISDIR(mode) else stat.S_IRUSR | stat.S_IWUSR
        if mode & needed != needed and (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            path.chmod(stat.S_IMODE(mode) | needed)


def take_back_directory(path: Path) -> None:
    """What is there and no directory is removed, a link too; a directory is unlocked. Never one
    removed: where nothing was a moment ago, somebody beside us may have made it by now."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(path.lstat().st_mode):
            unlock(path)
        else:
            path.unlink()


def remove_unless_file(path: Path) -> None:
    """Makes room for a file: a directory or a pipe of its name goes."""
    with contextlib.suppress(OSError):
        if not stat.S_ISREG(path.lstat().st_mode):
            remove_tree(path)


def remove_named(name: str, below: Path) -> bool:
    """Removes whatever has that name in a directory below the given one, however deep; says
    whether none is left."""
    if not IS_POSIX:
        for found in [path for path in below.rglob(name) if path.parent != below]:
            remove_tree(found)
        return not any(path.parent != below for path in below.rglob(name))
    search_path = [entry for entry in os.get_exec_path() if entry.startswith("/")]
    found = ("find", ".", "-mindepth", "2", "-name", name)
    for command in (
        (*found, "-prune", "-execdir", "rm", "-rf", "--", "{}", "+"),
        # Where its owner forbade it to itself, its owner can allow it again.
        ("chmod", "-R", "u+rwX", "."),
        (*found, "-prune", "-execdir", "rm", "-rf", "--", "{}", "+"),
    ):
        done = subprocess.run(
            command,
            cwd=below,
            env={"PATH": os.pathsep.join(search_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            start_new_session=True,
        )
        if command[0] == "find" and done.returncode == 0:
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
