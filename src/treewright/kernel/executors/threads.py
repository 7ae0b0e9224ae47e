"""Several requests at once, each in a thread; the work itself runs in child processes."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Generic

from treewright.kernel.executors.base import Done, Outcome, Request, Worker


class ThreadExecutor(Generic[Request, Outcome]):
    def __init__(self, work: Callable[[Request], Outcome], capacity: int) -> None:
        self.capacity = capacity
        self._work = work
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[Done[Request, Outcome]] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._serve, args=(f"thread-{number}",), daemon=True)
            for number in range(1, capacity + 1)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, request: Request) -> None:
        self._requests.put(request)

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        try:
            return self._done.get(timeout=timeout)
        except queue.Empty:
            return None

    def close(self) -> None:
        for _ in self._threads:
            self._requests.put(None)
        for thread in self._threads:
            thread.join()

    def _serve(self, name: str) -> None:
        worker = Worker(name, os.getpid())
        while (request := self._requests.get()) is not None:
            try:
                done = Done(request, self._work(request), worker=worker)
            except BaseException as error:  # a thread that ends would be waited for for ever
                done = Done(request, None, error, worker)
            self._done.put(done)
