"""The console of this process: Ctrl-C at the end of a step, and a stderr that may be closed."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Handle a SIGINT that arrives inside the block at its end. For short blocks.

    Otherwise the files and the state in memory could differ: a short step spends most of its time
    in `fsync`, and Python raises KeyboardInterrupt as soon as that returns.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted
        return
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        yield
        return
    arrived: list[FrameType | None] = []
    signal.signal(signal.SIGINT, lambda _number, frame: arrived.append(frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived:
            handler(signal.SIGINT, arrived[0])


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
