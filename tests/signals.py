"""Signal handlers as a terminal gives them to a program.

Tests are also started with `nohup`, which ignores SIGHUP, and in the background of a script, which
ignores SIGINT. Children inherit that. The test process keeps its handlers, because `nohup` is to
protect it. A program that a test sends signals to is started with `as_from_a_terminal`."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

_NUMBERS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def as_from_a_terminal() -> None:
    """Reset all signals to their defaults; a `preexec_fn` for `Popen`."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_DFL)


def as_python_from_a_terminal() -> None:
    """Reset all signals in a fork of Python, which has replaced the handler of SIGINT."""
    as_from_a_terminal()
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let a SIGINT interrupt this process within the block."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
