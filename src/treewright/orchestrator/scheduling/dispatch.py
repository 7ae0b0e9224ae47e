"""Attempts on an executor, awaited one by one by the process that decides.

A thread collects what the executor has done and hands it to the event loop. A worker that was
lost is a fault: the attempt is `unavailable`, nothing is learned, and the goal comes back. When
the executor itself is lost, every attempt under way raises what it said.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from treewright.kernel.executors.base import Done, Executor, NotBegun, WorkerLost
from treewright.kernel.executors.registry import Make
from treewright.kernel.executors.threads import ThreadExecutor
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.types import Result
from treewright.orchestrator.workers import trying
from treewright.orchestrator.workers.base import EXCEPTION, UNAVAILABLE, failed
from treewright.orchestrator.workers.meter import Meter
from treewright.orchestrator.workers.trying import AttemptRequest, Tried

AttemptExecutor: TypeAlias = Executor[AttemptRequest, Tried]
_Done: TypeAlias = Done[AttemptRequest, Tried]

LONGEST_GOODBYE_SECONDS = 30.0
"""How long a cancelled attempt is waited for; after that what it used is not known."""
_NOTICEABLE_SECONDS = 0.05
"""A queue that is left sooner was none."""
_TICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Attempting:
    """What makes a scheduler's executor, and whether attempts then run in other processes."""

    make: Make[AttemptRequest, Tried]
    elsewhere: bool = False

    def lean_sessions(self, config: OrchestratorConfig) -> int:
        """Sessions of this process. To read goals for the replay check one is enough."""
        return 1 if self.elsewhere else config.lean_sessions


def beside(config: OrchestratorConfig) -> Attempting:
    """Attempts in threads of this process."""
    return Attempting(lambda work: ThreadExecutor(work, config.attempts_at_once))


class Dispatch:
    """Belongs to the event loop that it is made in; `close` ends the executor too."""

    def __init__(self, executor: AttemptExecutor) -> None:
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(executor.capacity)
        self._open: dict[int, tuple[AttemptRequest, asyncio.Future[_Done]]] = {}
        self._submitted = threading.Semaphore(0)
        self._closing = False
        self._broken: BaseException | None = None
        self._thread = threading.Thread(target=self._collect, name="attempts", daemon=True)
        self._thread.start()

    async def run(self, request: AttemptRequest, meter: Meter) -> Result:
        """What came of an attempt; what it used goes to the meter, also when it is cancelled."""
        started = time.monotonic()
        try:
            with meter.waiting():
                async with asyncio.timeout(trying.LONGEST_WAIT_SECONDS):
                    await self._slots.acquire()
        except TimeoutError:
            return trying.no_turn(request.strategy, started)
        submitted = time.monotonic()
        future = self._submit(request)
        try:
            done = await asyncio.shield(future)
        except asyncio.CancelledError:
            self._executor.cancel(request)
            await asyncio.wait({future}, timeout=LONGEST_GOODBYE_SECONDS)
            if future.done() and future.exception() is None:
                _account(future.result(), submitted, meter)
            raise
        _account(done, submitted, meter)
        return _result_of(done, submitted)

    def close(self) -> None:
        """Not for the loop's own thread: waits for what is under way."""
        self._closing = True
        self._submitted.release()
        self._thread.join()
        self._executor.close()

    def _submit(self, request: AttemptRequest) -> asyncio.Future[_Done]:
        future: asyncio.Future[_Done] = self._loop.create_future()
        future.add_done_callback(lambda _: self._slots.release())
        try:
            if self._broken is not None:
                raise self._broken
            self._open[id(request)] = request, future
            self._executor.submit(request)
        except BaseException:
            self._open.pop(id(request), None)
            future.cancel()
            raise
        self._submitted.release()
        return future

    # -- the collecting thread ------------------------------------------------------------

    def _collect(self) -> None:
        while self._submitted.acquire() and not self._closing:
            try:
                done = self._executor.next_done(_TICK_SECONDS)
                while done is None and not self._closing:
                    done = self._executor.next_done(_TICK_SECONDS)
            except BaseException as error:
                self._tell(self._fail, error)
                return
            if done is not None:
                self._tell(self._settle, done)

    def _tell(self, callback: Callable[[Any], None], what: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was ended, and nobody waits
            self._loop.call_soon_threadsafe(callback, what)

    def _settle(self, done: _Done) -> None:
        _, future = self._open.pop(id(done.request))
        future.set_result(done)

    def _fail(self, error: BaseException) -> None:
        self._broken = error
        for _, future in self._open.values():
            future.set_exception(error)
            future.exception()  # some are waited for by nobody any more
        self._open.clear()


def _account(done: _Done, submitted: float, meter: Meter) -> None:
    tried = done.outcome
    if tried is None:
        return
    meter.cpu_seconds += tried.cpu_seconds
    meter.lessons += tried.lessons
    meter.spend(tried.usage)
    queued = time.monotonic() - submitted - tried.seconds
    meter.add_wait(tried.waited_seconds + (queued if queued >= _NOTICEABLE_SECONDS else 0.0))


def _result_of(done: _Done, submitted: float) -> Result:
    strategy, tried = done.request.strategy, done.outcome
    if isinstance(done.error, WorkerLost | NotBegun):
        return failed(strategy, str(done.error), submitted, UNAVAILABLE)
    if tried is None:
        error = f"{type(done.error).__name__}: {done.error}"
        return failed(strategy, error, submitted, EXCEPTION)
    if tried.cancelled:
        return failed(strategy, "the worker was told to stop", submitted, UNAVAILABLE)
    worker = done.worker
    if worker is None or worker.pid == os.getpid():
        return tried.result
    metadata = {**tried.result.metadata, "worker": worker.name}
    return msgspec.structs.replace(tried.result, metadata=metadata)
