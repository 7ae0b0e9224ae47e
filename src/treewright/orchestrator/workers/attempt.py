"""One attempt of a strategy at a goal: within its limits, measured, cancelled when asked to.

The strategies of a process are coroutines on one event loop and share Lean sessions. An executor
asks for an attempt from one of its threads and waits there for the report, so an attempt is the
same in the scheduler's process and in a worker process of a cluster.

A worker process keeps one event loop, and one Lean session for each of its threads, from one
attempt to the next; they end with the process. It opens neither ledger nor marketplace, makes no
decision, and its claims are checked by the scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Mapping
from multiprocessing.util import Finalize
from pathlib import Path

import msgspec

from treewright.kernel.executors.protocol import Stop, current_stop
from treewright.lean.choice import Choice
from treewright.llm.usage import Usage
from treewright.orchestrator.types import Goal, Result
from treewright.orchestrator.workers.factory import StubWorker, UnavailableWorker, all_workers
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.meter import Meter, current_meter
from treewright.orchestrator.workers.worker import EXCEPTION, UNAVAILABLE, Worker, failed
from treewright.proving.learning import Lesson

GRACE_SECONDS = 10.0
"""A worker that exceeds its own time limit by this much is cancelled."""
MAX_WAIT_SECONDS = 600.0
"""The longest wait for a Lean session. After it the attempt is `unavailable`: the strategy has
tried nothing, and the goal comes back later."""
_MIN_POLL_SECONDS = 0.5
_CLOSE_SECONDS = 10.0


class AttemptRequest(msgspec.Struct, frozen=True):
    """One strategy on one goal, for `budget` seconds; `lessons` are given to its searches."""

    goal: Goal
    strategy: str
    budget: float
    lessons: tuple[Lesson, ...] = ()


class AttemptReport(msgspec.Struct, frozen=True):
    """The claim or failure of a strategy, and the resources that the attempt used.

    `seconds` is the whole time of the attempt, `waited_seconds` the part that was only waiting.
    """

    result: Result
    seconds: float
    waited_seconds: float
    cpu_seconds: float
    cancelled: bool = False
    lessons: tuple[Lesson, ...] = ()
    usage: Usage | None = None


class LocalStrategies:
    """The workers of this process, for the threads of an executor."""

    def __init__(self, workers: Mapping[str, Worker], loop: asyncio.AbstractEventLoop) -> None:
        self._workers = workers
        self._loop = loop

    def attempt(self, request: AttemptRequest) -> AttemptReport:
        """Make an attempt and block until it is over. Not for the thread of the event loop."""
        work = self._attempt(request, current_stop())
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _attempt(self, request: AttemptRequest, stop: Stop) -> AttemptReport:
        meter, started = Meter(request.lessons), time.monotonic()
        current_meter.set(meter)
        work = self._workers[request.strategy].run(request.goal, request.budget)
        task = asyncio.ensure_future(_limited(request, work, meter))
        stop.on_set(lambda: self._loop.call_soon_threadsafe(task.cancel))
        try:
            result = await task
        except asyncio.CancelledError:
            if not stop.is_set():
                raise  # the event loop is being closed
            result = failed(request.strategy, "cancelled", started)
        seconds, waited = time.monotonic() - started, meter.waited_seconds
        worked = max(0.0, seconds - waited)
        return AttemptReport(
            msgspec.structs.replace(result, time_seconds=min(result.time_seconds, worked)),
            seconds,
            waited,
            meter.cpu_seconds,
            cancelled=task.cancelled(),
            lessons=tuple(meter.lessons),
            usage=meter.usage,
        )


async def _limited(request: AttemptRequest, work: Awaitable[Result], meter: Meter) -> Result:
    """Return the worker's result, or a failure if the worker or its wait takes too long."""
    strategy, started = request.strategy, time.monotonic()
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            waited = meter.waited_seconds
            left = request.budget + GRACE_SECONDS - (time.monotonic() - started - waited)
            if left <= 0:
                return failed(strategy, "timeout", started)
            if waited >= MAX_WAIT_SECONDS:
                return wait_expired(strategy, started)
            pause = min(left, MAX_WAIT_SECONDS - waited)
            await asyncio.wait({task}, timeout=max(pause, _MIN_POLL_SECONDS))
        result: object = task.result()
        if isinstance(result, Result):
            return result
        kind = type(result).__name__
        error = f"the worker of {strategy!r} returned {kind} instead of a Result"
        return failed(strategy, error, started, EXCEPTION)
    except Exception as error:
        return failed(strategy, f"{type(error).__name__}: {error}", started, EXCEPTION)
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


def wait_expired(strategy: str, started: float) -> Result:
    """Return the result of an attempt that waited since `started` and could not begin."""
    error = f"no Lean session was free within {MAX_WAIT_SECONDS:g} s"
    return failed(strategy, error, started, UNAVAILABLE)


# -- in a worker process of a cluster ---------------------------------------------------------


def run_remote_attempt(
    request: AttemptRequest, *, is_stub: bool = False, project: str = ""
) -> AttemptReport:
    """Make one attempt in this process, by the strategies that are installed here.

    Goals may import the Lake project around `project`; the worker reads it from the same path.
    """
    if is_stub:
        workers: dict[str, Worker] = {request.strategy: StubWorker(request.strategy)}
    else:
        workers = _process.workers(project)
        worker = workers.get(request.strategy)
        if worker is None:
            why = f"no strategy {request.strategy!r} is installed"
            worker = UnavailableWorker(request.strategy, why)
        probe = worker.probe()
        if not probe.available:
            error = f"not available on this worker: {probe.detail}"
            result = failed(request.strategy, error, time.monotonic(), UNAVAILABLE)
            return AttemptReport(result, 0, 0, 0)
    return LocalStrategies(workers, _process.loop()).attempt(request)


class _WorkerProcess:
    """The event loop and the Lean sessions that a worker process keeps between attempts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lean: list[LeanAccess] = []
        self._of_thread = threading.local()

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                thread = threading.Thread(
                    target=self._loop.run_forever, name="strategies", daemon=True
                )
                thread.start()
                # Runs at every end of the process except by a signal; Lean then ends by itself.
                Finalize(None, self._close, exitpriority=100)
            return self._loop

    def workers(self, project: str) -> dict[str, Worker]:
        """Return the workers of the calling thread; each thread has a Lean session."""
        if getattr(self._of_thread, "project", None) != project:
            start = Path(project) if project else None
            lean = LeanAccess(sessions=1, start=start, choice=Choice("wasm", "on a cluster"))
            with self._lock:
                self._lean.append(lean)
            self._of_thread.workers = {worker.strategy: worker for worker in all_workers(lean)}
            self._of_thread.project = project
        return self._of_thread.workers

    def _close(self) -> None:
        assert self._loop is not None
        for lean in self._lean:
            closing = asyncio.run_coroutine_threadsafe(lean.close(), self._loop)
            with contextlib.suppress(Exception):  # Lean ends with this process in any case
                closing.result(_CLOSE_SECONDS)


_process = _WorkerProcess()
