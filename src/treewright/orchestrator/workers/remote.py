"""The strategies in a worker process of a cluster, with Lean sessions that stay warm.

A process keeps one event loop, and for each of its threads one Lean session, from one attempt to
the next; they end with the process. It opens no ledger and no marketplace, decides nothing, and
what it claims is checked by the coordinator.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from multiprocessing.util import Finalize
from pathlib import Path

import msgspec

from treewright.lean.choice import Choice
from treewright.orchestrator.workers.base import UNAVAILABLE, Worker, failed
from treewright.orchestrator.workers.factory import Missing, all_workers
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.stub import StubWorker
from treewright.orchestrator.workers.trying import AttemptRequest, Strategies, Tried

_CLOSE_SECONDS = 10.0


class RemoteAttempt(msgspec.Struct, frozen=True):
    """A request as it travels. A worker reads a project from the same path as we do."""

    request: AttemptRequest
    stub: bool = False
    project: str = ""  # the directory whose Lake project goals may import


def attempt_there(payload: bytes) -> bytes:
    """One attempt in this process; data in, data out."""
    attempt = msgspec.msgpack.decode(payload, type=RemoteAttempt)
    return msgspec.msgpack.encode(_attempt(attempt))


def _attempt(attempt: RemoteAttempt) -> Tried:
    request = attempt.request
    if attempt.stub:
        stubs = {request.strategy: StubWorker(request.strategy)}
        return Strategies(stubs, _process.loop()).attempt(request)
    workers = _process.workers(attempt.project)
    worker = workers.get(request.strategy)
    if worker is None:
        worker = Missing(request.strategy, f"no strategy {request.strategy!r} is installed")
    probe = worker.probe()
    if not probe.available:
        error = f"not available on this worker: {probe.detail}"
        return Tried(failed(request.strategy, error, time.monotonic(), UNAVAILABLE), 0, 0, 0)
    return Strategies(workers, _process.loop()).attempt(request)


class _Process:
    """What this process keeps between attempts."""

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
                # Runs however the process ends but by a signal; then Lean ends by itself.
                Finalize(None, self._close, exitpriority=100)
            return self._loop

    def workers(self, project: str) -> dict[str, Worker]:
        """Those of the calling thread: so there are as many Lean sessions as attempts at once."""
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
            with contextlib.suppress(Exception):  # what is left ends with this process
                closing.result(_CLOSE_SECONDS)


_process = _Process()
