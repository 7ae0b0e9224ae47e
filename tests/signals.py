"""Signals as a program finds them that a person starts in a terminal.

Tests are also started with `nohup`, which ignores SIGHUP, and in the background of a script, which
ignores SIGINT. Children inherit that. The process of the tests keeps what it was given: `nohup`
is to protect it. What a test sends signals to is started with `as_from_a_terminal`.
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator

_NUMBERS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


def as_from_a_terminal() -> None:
    """`preexec_fn` for `Popen`: nothing is ignored."""
    for number in _NUMBERS:
        signal.signal(number, signal.SIG_DFL)


def as_python_from_a_terminal() -> None:
    """The same for a fork of Python, which has set its own handler of SIGINT by now."""
    as_from_a_terminal()
    signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within the block a SIGINT interrupts this process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
