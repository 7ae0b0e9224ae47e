"""Stop on signals: the first ends the command in order, the second at once; both can be resumed.

A closed terminal sends SIGHUP, sometimes twice (from the shell and from the system). It never stops
the command at once, because running evaluations must not look as if they had killed the search.
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
    """Yield an event that the first SIGINT, SIGTERM or SIGHUP sets.

    A second SIGINT or SIGTERM raises `KeyboardInterrupt`. An ignored SIGHUP (`nohup`) stays so.
    """
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
