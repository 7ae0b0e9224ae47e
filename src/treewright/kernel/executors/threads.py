"""An executor that runs each request in a thread. The work itself may run in child processes."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic

from treewright.kernel.executors.backends import Backend, ExecutorFactory, ExecutorOptions
from treewright.kernel.executors.protocol import (
    Done,
    NotBegun,
    Outcome,
    Request,
    Stop,
    Worker,
    stoppable_by,
)


class ThreadExecutor(Generic[Request, Outcome]):
    """Runs up to `capacity` requests at once, each in a thread.

    A thread is started when a request finds no idle one.

    Args:
        work: Returns the outcome of a request.
        capacity: The largest number of threads.

    Example:
        >>> executor = ThreadExecutor(lambda request: 2 * request, capacity=2)
        >>> executor.submit(21)
        >>> executor.next_done().outcome
        42
        >>> executor.close()
    """

    def __init__(self, work: Callable[[Request], Outcome], capacity: int) -> None:
        self.capacity = capacity
        self._work = work
        self._requests: queue.SimpleQueue[tuple[Request, Stop] | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Done[Request, Outcome]] = queue.SimpleQueue()
        self._stops: dict[int, Stop] = {}
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)

    def submit(self, request: Request) -> None:
        stop = self._stops[id(request)] = Stop()
        self._requests.put((request, stop))
        if len(self._threads) < self.capacity and not self._idle.acquire(blocking=False):
            name = f"thread-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._serve, args=(name,), name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        try:
            return self._done.get(timeout=timeout)
        except queue.Empty:
            return None

    def cancel(self, request: Request) -> None:
        if (stop := self._stops.get(id(request))) is not None:
            stop.set()

    def close(self) -> None:
        for _ in self._threads:
            self._requests.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self, name: str) -> None:
        worker = Worker(name, os.getpid())
        while (entry := self._next()) is not None:
            request, stop = entry
            try:
                if stop.is_set():
                    raise NotBegun("cancelled")
                with stoppable_by(stop):
                    done = Done(request, self._work(request), worker=worker)
            except BaseException as error:  # without a completion the caller would wait for ever
                done = Done(request, None, error, worker)
            self._stops.pop(id(request), None)
            self._done.put(done)

    def _next(self) -> tuple[Request, Stop] | None:
        """Return the next request; the thread is idle while it waits for one."""
        try:
            return self._requests.get_nowait()
        except queue.Empty:
            self._idle.release()
            return self._requests.get()


@contextlib.contextmanager
def _open(options: ExecutorOptions) -> Iterator[ExecutorFactory[Any, Any]]:
    yield lambda work: ThreadExecutor(work, options.capacity)


backend = Backend(_open)
