"""Many goals: a queue worked off through the lanes, no faster than the throttle lets it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

from treewright.orchestrator.scheduling.lanes import Lanes, Ticket
from treewright.orchestrator.scheduling.stopping import unless_set
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.types import Goal, Result
from treewright.orchestrator.workers.base import UNAVAILABLE

_MOST_RETRIES = 3
T = TypeVar("T")
Observer = Callable[[Goal, Result], None]


@dataclass(slots=True)
class WorkingOff:
    """One queue. How a goal is closed is the scheduler's business."""

    run_goal: Callable[[Goal], Coroutine[Any, Any, Result]]
    lanes: Lanes[Goal]
    throttle: Throttle
    stopping: asyncio.Event
    on_result: Observer | None = None
    _results: dict[str, Result] = field(default_factory=dict[str, Result], init=False)

    async def all_of(self, queue: asyncio.Queue[Goal]) -> dict[str, Result]:
        """Until the queue is empty and every goal has a result, or until told to stop."""
        running: dict[asyncio.Task[Result], Ticket[Goal]] = {}
        finished: list[asyncio.Task[Result]] = []
        wake = asyncio.Event()

        def ended(task: asyncio.Task[Result]) -> None:
            finished.append(task)
            wake.set()

        try:
            while not self.stopping.is_set():
                while not queue.empty():
                    goal = queue.get_nowait()
                    self.lanes.submit(goal, heavy=goal.heavy)
                if (ticket := self.lanes.admit(time.monotonic())) is not None:
                    if await unless_set(self.stopping, self.throttle.pause()) is None:
                        break
                    task = asyncio.create_task(self.run_goal(ticket.item))
                    running[task] = ticket
                    task.add_done_callback(ended)
                elif not running and not self.lanes.waiting and queue.empty():
                    break
                else:
                    await unless_set(self.stopping, _within(wake.wait(), self.lanes.next_due))
                    wake.clear()
                # Also while starting others waits: a result is not kept from the observer.
                while finished:
                    task = finished.pop()
                    self._settle(task.result(), running.pop(task))
        finally:
            for task in running:
                task.cancel()
            if running:
                await asyncio.wait(running)
        for task, ticket in running.items():
            if not task.cancelled() and task.exception() is None and task.result().success:
                self._settle(task.result(), ticket)
        return self._results

    def _settle(self, result: Result, ticket: Ticket[Goal]) -> None:
        if result.metadata.get("kind") == UNAVAILABLE and ticket.retries < _MOST_RETRIES:
            self.lanes.retry(ticket, time.monotonic())
            return
        self.lanes.release(ticket)
        self._results[ticket.item.id] = result
        if self.on_result is not None:
            self.on_result(ticket.item, result)


async def _within(work: Awaitable[T], due: float | None) -> T | None:
    """`work`, but no longer than until `due` (of `time.monotonic`)."""
    if due is None:
        return await work
    try:
        return await asyncio.wait_for(work, max(0.0, due - time.monotonic()))
    except TimeoutError:
        return None
