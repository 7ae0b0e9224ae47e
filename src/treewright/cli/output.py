"""The only way from a command to the terminal: whatever it prints, nothing in it steers it."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from treewright.kernel.rendering.terminal import visible

if TYPE_CHECKING:
    from typing_extensions import Buffer


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """A line on stdout or stderr, made visible."""
    click.echo(visible(str(message)), err=err, nl=nl)


def rewrite(message: str, *, end: bool = False) -> None:
    """On a terminal, in the place of the current line of stderr."""
    click.echo(f"\r{visible(message)}", err=True, nl=end)


class Visible:
    """A stream for writers of their own: passes on what they write, made visible."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        # A line of CSV ends in CR and LF; elsewhere a CR would overwrite the line.
        line, end, rest = text.rpartition("\r\n")
        return self._stream.write(visible(line) + end + visible(rest))


class _Unread(io.FileIO):
    """A file descriptor that people read, or not: what cannot be written is left out."""

    def write(self, b: Buffer, /) -> int:
        left = memoryview(b).cast("B")
        size = left.nbytes
        with contextlib.suppress(OSError):
            while left and (written := super().write(left)):  # none where it would have to wait
                left = left[written:]
        return size


def outlive_the_reader() -> None:
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
