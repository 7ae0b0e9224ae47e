"""Printing. Every text of a command goes through here, so that none controls the terminal."""

from __future__ import annotations

import sys
import time
from typing import TextIO

import click

from treewright.kernel.text.printable import visible

_SECONDS_BETWEEN_LINES = 5.0
_SECONDS_BETWEEN_REWRITES = 0.1


def echo(message: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line on stdout or stderr, with control characters made visible."""
    click.echo(visible(str(message)), err=err, nl=nl)


def announce(text: str) -> None:
    """Print a notice of the program on stderr."""
    echo(f"treewright: {text}", err=True)


def print_json(document: object) -> None:
    """Print one JSON document on stdout; the document may contain msgspec records."""
    import msgspec

    echo(msgspec.json.encode(document).decode())


class ProgressLine:
    """Progress on stderr: a line that is rewritten on a terminal, elsewhere a line now and then.

    Args:
        seconds: How long to wait before the next plain line of the same step.
    """

    def __init__(self, seconds: float = _SECONDS_BETWEEN_LINES) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._wait = _SECONDS_BETWEEN_REWRITES if self._is_terminal else seconds
        self._step, self._last = "", float("-inf")

    def __call__(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        is_finished = total > 0 and done >= total
        if step == self._step and not is_finished and now - self._last < self._wait:
            return
        if self._is_terminal and self._step and step != self._step:
            echo(err=True)
        self._step, self._last = step, now
        line = f"  {step}: {done}{f' of {total}' if total else ''}"
        if self._is_terminal:
            _rewrite(f"{line:<60}")
        else:
            echo(line, err=True)

    def close(self) -> None:
        """End the rewritten line."""
        if self._is_terminal and self._step:
            echo(err=True)


class DownloadBar:
    """Progress of an installation on stderr: a bar on a terminal, elsewhere a line per step."""

    def __init__(self) -> None:
        self._step = ""
        self._is_terminal = sys.stderr.isatty()

    def __call__(self, step: str, done: int, total: int) -> None:
        if self._is_terminal and total:
            width = 30
            filled = width * done // total
            megabytes = f"{done / 1e6:.0f}/{total / 1e6:.0f} MB"
            line = f"  {step:<24} [{'#' * filled}{'.' * (width - filled)}] {megabytes}"
            _rewrite(f"{line:<78}", end=done >= total)
        elif step != self._step:
            echo(f"  {step} ...", err=True)
        self._step = step


def _rewrite(message: str, *, end: bool = False) -> None:
    """Replace the current line of stderr on a terminal."""
    click.echo(f"\r{visible(message)}", err=True, nl=end)


class Visible:
    """A stream, for writers such as csv, that makes control characters visible."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        # A line of CSV ends in CR and LF; elsewhere a CR would overwrite the line.
        line, end, rest = text.rpartition("\r\n")
        return self._stream.write(visible(line) + end + visible(rest))
