"""One attempt, where the strategies are: within its limits, measured, ended when told to.

The strategies of a process are coroutines on one event loop, which share Lean sessions. An
executor asks for an attempt from a thread of its own and waits there for what comes of it, so an
attempt is the same thing beside the scheduler and in a worker process of a cluster.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping

import msgspec

from treewright.kernel.executors.base import Stop, current_stop
from treewright.llm.usage import Usage
from treewright.orchestrator.types import Goal, Result
from treewright.orchestrator.workers.base import EXCEPTION, UNAVAILABLE, Worker, failed
from treewright.orchestrator.workers.meter import Meter, current_meter
from treewright.proving.learning import Lesson

GRACE_SECONDS = 10.0
"""A worker that ignores its own limit for this long is cancelled from outside."""
LONGEST_WAIT_SECONDS = 600.0
"""Waiting for a Lean session is not the strategy's time. After this much of it nothing was tried:
the attempt is `unavailable`, and the goal comes back later."""
_SHORTEST_NAP = 0.5


class AttemptRequest(msgspec.Struct, frozen=True):
    """One strategy on one goal, for so many seconds."""

    goal: Goal
    strategy: str
    budget: float
    lessons: tuple[Lesson, ...] = ()
    """What searches are given of earlier ones."""


class Tried(msgspec.Struct, frozen=True):
    """What a strategy claims or why it failed, and what the attempt used.

    `seconds` is all of its time there, `waited_seconds` the part in which it only waited.
    """

    result: Result
    seconds: float
    waited_seconds: float
    cpu_seconds: float
    cancelled: bool = False
    lessons: tuple[Lesson, ...] = ()
    usage: Usage | None = None


class Strategies:
    """The strategies of this process, for the threads of an executor."""

    def __init__(self, workers: Mapping[str, Worker], loop: asyncio.AbstractEventLoop) -> None:
        self._workers = workers
        self._loop = loop

    def attempt(self, request: AttemptRequest) -> Tried:
        """Blocks until the attempt is over. Not for the thread of the event loop."""
        work = self._attempt(request, current_stop())
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _attempt(self, request: AttemptRequest, stop: Stop) -> Tried:
        meter, started = Meter(request.lessons), time.monotonic()
        current_meter.set(meter)
        work = self._workers[request.strategy].run(request.goal, request.budget)
        task = asyncio.ensure_future(_limited(request, work, meter))
        stop.on_set(lambda: self._loop.call_soon_threadsafe(task.cancel))
        try:
            result = await task
        except asyncio.CancelledError:
            if not stop.is_set():
                raise  # the loop itself is being ended
            result = failed(request.strategy, "cancelled", started)
        seconds, waited = time.monotonic() - started, meter.waited_seconds
        worked = max(0.0, seconds - waited)
        return Tried(
            msgspec.structs.replace(result, time_seconds=min(result.time_seconds, worked)),
            seconds,
            waited,
            meter.cpu_seconds,
            cancelled=task.cancelled(),
            lessons=tuple(meter.lessons),
            usage=meter.usage,
        )


async def _limited(request: AttemptRequest, work: Awaitable[Result], meter: Meter) -> Result:
    """The worker's result, unless it goes on for too long without waiting for anything."""
    strategy, started = request.strategy, time.monotonic()
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            waited = meter.waited_seconds
            left = request.budget + GRACE_SECONDS - (time.monotonic() - started - waited)
            if left <= 0:
                return failed(strategy, "timeout", started)
            if waited >= LONGEST_WAIT_SECONDS:
                return no_turn(strategy, started)
            nap = min(left, LONGEST_WAIT_SECONDS - waited)
            await asyncio.wait({task}, timeout=max(nap, _SHORTEST_NAP))
        return task.result()
    except Exception as error:
        return failed(strategy, f"{type(error).__name__}: {error}", started, EXCEPTION)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


def no_turn(strategy: str, started: float) -> Result:
    """Of an attempt that waited for too long, since `started`, to begin."""
    error = f"no Lean session was free within {LONGEST_WAIT_SECONDS:g} s"
    return failed(strategy, error, started, UNAVAILABLE)
