"""Stopping asyncio work in order: by a signal to the process, or by an event."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Call `stop` when the process is asked to end; yield a function that says whether it was.

    The first SIGINT or SIGTERM calls `stop`, the second one ends the process. A closed terminal
    (SIGHUP, unless it is ignored) calls `stop` however often the signal comes.
    """
    loop = asyncio.get_running_loop()
    received: list[bool] = []
    handled = [*_STOP_SIGNALS]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        handled.append(signal.SIGHUP)

    def handle() -> None:
        received.append(True)
        stop()
        for number in _STOP_SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in handled:
        loop.add_signal_handler(number, handle)
    try:
        yield lambda: bool(received)
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


async def run_unless_set(stop: asyncio.Event, work: Awaitable[T]) -> T | None:
    """Return the result of `work`; cancel it and return None if `stop` is set first."""
    task = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for waiting in (task, stopped):
            waiting.cancel()
        # The work returns the resources that it borrowed before the caller continues.
        await asyncio.wait([task, stopped])
