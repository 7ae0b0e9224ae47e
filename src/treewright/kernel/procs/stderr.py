"""Stderr, which people read for a while: what a program says there must not be what ends it."""

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
    """A file descriptor that people read, or not: what cannot be written is left out."""

    def write(self, b: Buffer, /) -> int:
        left = memoryview(b).cast("B")
        size = left.nbytes
        with contextlib.suppress(OSError):
            while left and (written := super().write(left)):  # none where it would have to wait
                left = left[written:]
        return size


def ignore_write_errors() -> None:
    """From now on nothing ends because stderr is gone: a terminal that was closed, a `tee` that
    was killed, a log on a full disk. Stdout, which programs read, is as it was."""
    if sys.stderr is None:  # closed from the beginning: `2>&-`
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115
        return
    try:
        number = sys.stderr.fileno()
    except (OSError, ValueError):  # somebody's own stream, in this process
        return
    # Without a buffer in between, which raises where a signal handler writes inside of a write.
    sys.stderr = io.TextIOWrapper(
        _Unread(number, "w", closefd=False),
        encoding=sys.stderr.encoding,
        errors=sys.stderr.errors,
        write_through=True,
    )
