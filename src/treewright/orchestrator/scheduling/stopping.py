"""Awaiting something, but no longer than until told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


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
