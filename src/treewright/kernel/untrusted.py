"""Files that code we do not trust has written, or could have put something else for.

A results file, a log, an idea may be a pipe that never ends, a link to a device, or
larger than the memory. So such a file is opened without waiting and without following a
link, must be a regular file, and is read up to a size that no honest one has.
"""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
from pathlib import Path
from typing import BinaryIO

LARGEST_RESULTS = 256 << 20
LARGEST_TEXT = 16 << 20


class NotPlain(OSError):
    """It is there, but not a regular file of a believable size. The text says what it is."""


def read(path: Path, largest: int, inside: Path | None = None) -> bytes:
    """The whole file. With `inside`, directories on the way may not lead out of it."""
    with open_plain(path, largest, inside) as file:
        data = file.read(largest + 1)
    if len(data) > largest:  # it grew while it was read
        raise NotPlain(_too_large(path, largest))
    return data


def open_plain(path: Path, largest: int, inside: Path | None = None) -> BinaryIO:
    """Opens a regular file of at most `largest` bytes; anything else is NotPlain."""
    if inside is not None and not path.parent.resolve().is_relative_to(inside.resolve()):
        raise NotPlain(f"{path.name} is reached through a link that leads outside")
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        if path.is_symlink():
            raise NotPlain(f"{path.name} is a symbolic link, not a file") from None
        raise NotPlain(f"{path.name} cannot be read: {error.strerror}") from None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
        os.close(fd)
        if stat.S_ISREG(found.st_mode):
            raise NotPlain(_too_large(path, largest))
        raise NotPlain(f"{path.name} is {_kind(found.st_mode)}, not a file")
    return os.fdopen(fd, "rb")


def create(path: Path) -> BinaryIO:
    """A new, empty file in place of whatever has that name: a pipe there would make us wait,
    a link would make us write elsewhere. A device is written to: nobody but the machine's
    owner can have put it there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
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
