"""Ctrl-C once: end in order, everything resumable. Twice: end now, still resumable.

A terminal that is closed ends it in order too, however often that is said (a shell and the system
both do): nobody asks for haste, and what is under way must not look as if it had killed the search.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

from treewright.cli.output import echo
from treewright.kernel.procs import process

_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
"""None on Windows."""


@contextlib.contextmanager
def cancel_on_signals() -> Iterator[threading.Event]:
    """Yields an event that the first SIGINT, SIGTERM or SIGHUP sets; a second one of the former
    two interrupts. A SIGHUP that is ignored (`nohup`) stays so."""
    cancel = threading.Event()

    def handle(number: int, _frame: object) -> None:
        if cancel.is_set():
            if number == _HANGUP:
                return
            process.no_grace.set()
            raise KeyboardInterrupt
        cancel.set()
        echo("stopping; once more to stop at once", err=True)

    numbers = [signal.SIGINT, signal.SIGTERM]
    if _HANGUP is not None and signal.getsignal(_HANGUP) is not signal.SIG_IGN:
        numbers.append(_HANGUP)
    previous = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield cancel
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
