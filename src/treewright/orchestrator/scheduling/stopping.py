"""Being told to stop: by a signal, and while something is awaited."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

_ASKED = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stopping_on_signals(stop: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """SIGINT and SIGTERM stop in order, a second one ends the process; so does a terminal that is
    closed (SIGHUP, unless it is ignored), however often. Yields whether one came."""
    loop = asyncio.get_running_loop()
    came: list[bool] = []
    heard = [*_ASKED]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heard.append(signal.SIGHUP)

    def handle() -> None:
        came.append(True)
        stop()
        for number in _ASKED:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in heard:
        loop.add_signal_handler(number, handle)
    try:
        yield lambda: bool(came)
    finally:
        for number in heard:
            loop.remove_signal_handler(number)


async def unless_set(stop: asyncio.Event, work: Awaitable[T]) -> T | None:
    """The result of `work`, or None if `stop` is set first: then `work` is cancelled."""
    task = asyncio.ensure_future(work)
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([task, stopped], return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for waiting in (task, stopped):
            waiting.cancel()
        # What was lent to it is given back before the caller goes on.
        await asyncio.wait([task, stopped])
