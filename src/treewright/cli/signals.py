"""Ctrl-C once: end in order, everything resumable. Twice: end now, still resumable."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

from treewright.cli.output import echo
from treewright.kernel import process


@contextlib.contextmanager
def cancel_on_signals() -> Iterator[threading.Event]:
    """Yields an event that the first SIGINT or SIGTERM sets; the second one interrupts."""
    cancel = threading.Event()

    def handle(_number: int, _frame: object) -> None:
        if cancel.is_set():
            process.no_grace.set()
            raise KeyboardInterrupt
        cancel.set()
        echo("stopping; once more to stop at once", err=True)

    previous = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield cancel
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
