"""Several requests at once, each in a thread; the work itself runs in child processes."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic

from treewright.kernel.executors.base import (
    Done,
    NotBegun,
    Outcome,
    Request,
    Stop,
    Worker,
    working_under,
)
from treewright.kernel.executors.registry import Backend, Make, Place


class ThreadExecutor(Generic[Request, Outcome]):
    """Starts a thread when there is a request that none is free for, up to `capacity`."""

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
                with working_under(stop):
                    done = Done(request, self._work(request), worker=worker)
            except BaseException as error:  # a thread that ends would be waited for for ever
                done = Done(request, None, error, worker)
            self._stops.pop(id(request), None)
            self._done.put(done)

    def _next(self) -> tuple[Request, Stop] | None:
        """The next request; a thread is idle only while there is none."""
        try:
            return self._requests.get_nowait()
        except queue.Empty:
            self._idle.release()
            return self._requests.get()


@contextlib.contextmanager
def _open(place: Place) -> Iterator[Make[Any, Any]]:
    yield lambda work: ThreadExecutor(work, place.capacity)


backend = Backend(_open)
