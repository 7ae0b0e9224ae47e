"""The only way from a command to the terminal: whatever it prints, nothing in it steers it."""

from __future__ import annotations

from typing import TextIO

import click

from treewright.kernel.text.terminal import visible


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
