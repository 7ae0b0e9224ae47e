"""Stderr without the failures that would end the program."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Unread(io.FileIO):
    """A file that drops output that cannot be written."""

    def write(self, b: Buffer, /) -> int:
        left = memoryview(b).cast("B")
        size = left.nbytes
        with contextlib.suppress(OSError):
            while left and (written := super().write(left)):  # None if the write would block
                left = left[written:]
        return size


def ignore_write_errors() -> None:
    """Replace `sys.stderr` by one that drops output that cannot be written.

    So the program keeps running when its terminal is closed, a `tee` is killed or the disk with the
    log is full. Stdout, which programs read, stays as it is.
    """
    if sys.stderr is None:  # the shell closed it: `2>&-`
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
        return
    try:
        number = sys.stderr.fileno()
    except (OSError, ValueError):  # the caller replaced it with a stream without a descriptor
        return
    # Without a buffer, which raises if a signal handler writes during a write.
    sys.stderr = io.TextIOWrapper(
        _Unread(number, "w", closefd=False),
        encoding=sys.stderr.encoding,
        errors=sys.stderr.errors,
        write_through=True,
    )
