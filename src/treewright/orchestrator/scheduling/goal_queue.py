"""A queue of goals worked through by lanes and throttle, and the ways to stop it."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from treewright.orchestrator.scheduling.lanes import Lanes, Ticket
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.types import Goal, Result
from treewright.orchestrator.workers.base import UNAVAILABLE

T = TypeVar("T")
OnResult = Callable[[Goal, Result], None]

_MAX_RETRIES = 3
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


@dataclass(slots=True)
class GoalQueue:
    """Works through one queue of goals.

    Args:
        run_goal: Tries to close one goal.
        lanes: The slots for light and heavy goals.
        throttle: Delays each start while the machine is busy.
        stopping: Ends the work when it is set.
        on_result: Called with each goal and its result.
    """

    run_goal: Callable[[Goal], Coroutine[Any, Any, Result]]
    lanes: Lanes[Goal]
    throttle: Throttle
    stopping: asyncio.Event
    on_result: OnResult | None = None
    _results: dict[str, Result] = field(default_factory=dict[str, Result], init=False)

    async def run(self, queue: asyncio.Queue[Goal]) -> dict[str, Result]:
        """Work until the queue is empty and every goal has a result, or until `stopping` is set.

        Returns:
            The result of each goal that was finished, by the goal's id.
        """
        running: dict[asyncio.Task[Result], Ticket[Goal]] = {}
        finished: list[asyncio.Task[Result]] = []
        wake = asyncio.Event()

        def note_end(task: asyncio.Task[Result]) -> None:
            finished.append(task)
            wake.set()

        try:
            while not self.stopping.is_set():
                while not queue.empty():
                    goal = queue.get_nowait()
                    self.lanes.submit(goal, heavy=goal.heavy)
                if (ticket := self.lanes.admit(time.monotonic())) is not None:
                    task = asyncio.create_task(self._start(ticket.item))
                    running[task] = ticket
                    task.add_done_callback(note_end)
                elif not running and not self.lanes.waiting and queue.empty():
                    break
                else:
                    await run_unless_set(self.stopping, _until(wake.wait(), self.lanes.next_due))
                    wake.clear()
                while finished:
                    task = finished.pop()
                    self._settle(task.result(), running.pop(task))
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)
        # A goal that was proved before its cancellation took effect keeps its result.
        for task, ticket in running.items():
            if not task.cancelled() and task.exception() is None and task.result().success:
                self._settle(task.result(), ticket)
        return self._results

    async def _start(self, goal: Goal) -> Result:
        """Run a goal after the throttle's pause, which delays no other goal."""
        await self.throttle()
        return await self.run_goal(goal)

    def _settle(self, result: Result, ticket: Ticket[Goal]) -> None:
        """Keep the result, or give the goal another try if a strategy was unavailable."""
        if result.metadata.get("kind") == UNAVAILABLE and ticket.retries < _MAX_RETRIES:
            self.lanes.retry(ticket, time.monotonic())
            return
        self.lanes.release(ticket)
        self._results[ticket.item.id] = result
        if self.on_result is not None:
            self.on_result(ticket.item, result)


async def _until(work: Awaitable[T], due: float | None) -> T | None:
    """Await `work`, at most until `due` (of `time.monotonic`)."""
    if due is None:
        return await work
    try:
        return await asyncio.wait_for(work, max(0.0, due - time.monotonic()))
    except TimeoutError:
        return None
