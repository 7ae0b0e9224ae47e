"""Running attempts on an executor, in this process or on a cluster, and awaiting their reports.

A thread collects the reports of the executor and hands them to the event loop. A lost worker is a
fault: the attempt is `unavailable`, nothing is learned from it, and the goal comes back. When the
executor itself is lost, every attempt under way raises the executor's error.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from treewright.kernel.executors import backends
from treewright.kernel.executors.backends import ExecutorFactory
from treewright.kernel.executors.protocol import Done, Executor, NotBegun, WorkerLost
from treewright.kernel.executors.threads import ThreadExecutor
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.types import Result
from treewright.orchestrator.workers import attempt
from treewright.orchestrator.workers.attempt import AttemptReport, AttemptRequest
from treewright.orchestrator.workers.meter import Meter
from treewright.orchestrator.workers.worker import EXCEPTION, UNAVAILABLE, failed

AttemptExecutor: TypeAlias = Executor[AttemptRequest, AttemptReport]
_Done: TypeAlias = Done[AttemptRequest, AttemptReport]

CANCEL_WAIT_SECONDS = 30.0
"""The longest wait for the report of a cancelled attempt; after it, its usage is unknown."""
_MIN_QUEUE_SECONDS = 0.05
"""A shorter time in the executor's queue does not count as waiting."""
_TICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class AttemptBackend:
    """Makes a scheduler's executor; `is_remote` says that attempts run in other processes."""

    make: ExecutorFactory[AttemptRequest, AttemptReport]
    is_remote: bool = False

    def lean_sessions(self, config: OrchestratorConfig) -> int:
        """Return the number of Lean sessions in this process.

        With a remote backend this process only parses goals for the replay check, in one session.
        """
        return 1 if self.is_remote else config.lean_sessions


def local_backend(config: OrchestratorConfig) -> AttemptBackend:
    """Return the backend that runs attempts in threads of this process."""
    return AttemptBackend(lambda work: ThreadExecutor(work, config.max_parallel_attempts))


@contextlib.contextmanager
def open_backend(
    backend: str | None,
    cluster: str | None,
    config: OrchestratorConfig,
    project: Path | None = None,
) -> Iterator[AttemptBackend]:
    """Open the backend that `--parallel-backend` and `--cluster` name.

    A cluster stays connected for all schedulers that use the backend; it runs `lean_sessions`
    attempts at once, one for each Lean session.

    Args:
        backend: The name of an executor, or None for the default one.
        cluster: The address of a running dask scheduler, or None.
        config: The settings of the schedulers.
        project: A file or directory of the Lake project that goals may import.
    """
    chosen = backends.choose(backend, cluster)
    if chosen.is_remote:
        with chosen.open(backends.ExecutorOptions(config.lean_sessions, cluster)) as make:
            work = functools.partial(
                attempt.run_remote_attempt,
                is_stub=config.profile == 0,
                project=str(project.resolve()) if project is not None else "",
            )
            yield AttemptBackend(lambda _: make(work), is_remote=True)
    else:
        capacity = 1 if chosen.is_sequential else config.max_parallel_attempts
        with chosen.open(backends.ExecutorOptions(capacity)) as make:
            yield AttemptBackend(make)


class Dispatch:
    """Runs attempts on an executor for the event loop that it is created in.

    `close` also closes the executor.
    """

    def __init__(self, executor: AttemptExecutor) -> None:
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._slots = asyncio.Semaphore(executor.capacity)
        self._open: dict[int, tuple[AttemptRequest, asyncio.Future[_Done]]] = {}
        self._submitted = threading.Semaphore(0)
        self._closing = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._collect, name="attempts", daemon=True)
        self._thread.start()

    async def run(self, request: AttemptRequest, meter: Meter) -> Result:
        """Run an attempt and return its result.

        The meter is charged with the attempt's usage, also if the attempt is cancelled.
        """
        started = time.monotonic()
        try:
            with meter.waiting():
                async with asyncio.timeout(attempt.MAX_WAIT_SECONDS):
                    await self._slots.acquire()
        except TimeoutError:
            return attempt.wait_expired(request.strategy, started)
        submitted = time.monotonic()
        future = self._submit(request)
        try:
            done = await asyncio.shield(future)
        except asyncio.CancelledError:
            self._executor.cancel(request)
            await asyncio.wait({future}, timeout=CANCEL_WAIT_SECONDS)
            if future.done() and future.exception() is None:
                _charge(future.result(), submitted, meter)
            raise
        _charge(done, submitted, meter)
        return _result_of(done, submitted)

    def close(self) -> None:
        """Wait for the attempts under way and close the executor.

        Must not be called in the thread of the event loop.
        """
        self._closing = True
        self._submitted.release()
        self._thread.join()
        self._executor.close()

    def _submit(self, request: AttemptRequest) -> asyncio.Future[_Done]:
        future: asyncio.Future[_Done] = self._loop.create_future()
        future.add_done_callback(lambda _: self._slots.release())
        try:
            if self._error is not None:
                raise self._error
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
        """Hand each report to the event loop. Every submitted attempt allows one wait."""
        while self._submitted.acquire() and not self._closing:
            try:
                done = self._executor.next_done(_TICK_SECONDS)
                while done is None and not self._closing:
                    done = self._executor.next_done(_TICK_SECONDS)
            except BaseException as error:
                self._call_in_loop(self._fail, error)
                return
            if done is not None:
                self._call_in_loop(self._settle, done)

    def _call_in_loop(self, callback: Callable[[Any], None], argument: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and no attempt is awaited
            self._loop.call_soon_threadsafe(callback, argument)

    def _settle(self, done: _Done) -> None:
        _, future = self._open.pop(id(done.request))
        future.set_result(done)

    def _fail(self, error: BaseException) -> None:
        self._error = error
        for _, future in self._open.values():
            future.set_exception(error)
            future.exception()  # marks it as retrieved: some attempts are not awaited any more
        self._open.clear()


def _charge(done: _Done, submitted: float, meter: Meter) -> None:
    """Add the usage of an attempt to the meter."""
    report = done.outcome
    if report is None:
        return
    meter.cpu_seconds += report.cpu_seconds
    meter.lessons += report.lessons
    meter.add_usage(report.usage)
    queued = time.monotonic() - submitted - report.seconds
    meter.add_wait(report.waited_seconds + (queued if queued >= _MIN_QUEUE_SECONDS else 0.0))


def _result_of(done: _Done, submitted: float) -> Result:
    strategy, report = done.request.strategy, done.outcome
    if isinstance(done.error, WorkerLost | NotBegun):
        return failed(strategy, str(done.error), submitted, UNAVAILABLE)
    if report is None:
        error = f"{type(done.error).__name__}: {done.error}"
        return failed(strategy, error, submitted, EXCEPTION)
    if report.cancelled:
        return failed(strategy, "the worker was told to stop", submitted, UNAVAILABLE)
    worker = done.worker
    if worker is None or worker.pid == os.getpid():
        return report.result
    metadata = {**report.result.metadata, "worker": worker.name}
    return msgspec.structs.replace(report.result, metadata=metadata)
