"""An executor that runs one request at a time, in the calling thread."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
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


class InlineExecutor(Generic[Request, Outcome]):
    """Runs a request inside `next_done`, in the thread that calls it."""

    capacity = 1

    def __init__(self, work: Callable[[Request], Outcome]) -> None:
        self._work = work
        self._waiting: deque[Request] = deque()
        self._stops: dict[int, Stop] = {}
        self._worker = Worker("main", os.getpid())

    def submit(self, request: Request) -> None:
        self._stops[id(request)] = Stop()
        self._waiting.append(request)

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        if not self._waiting:
            time.sleep(timeout or 0)
            return None
        request = self._waiting.popleft()
        stop = self._stops[id(request)]
        try:
            if stop.is_set():
                return Done(request, None, NotBegun("cancelled"), self._worker)
            with stoppable_by(stop):
                return Done(request, self._work(request), worker=self._worker)
        except Exception as error:
            return Done(request, None, error, self._worker)
        finally:
            self._stops.pop(id(request), None)

    def cancel(self, request: Request) -> None:
        if (stop := self._stops.get(id(request))) is not None:
            stop.set()

    def close(self) -> None:
        self._waiting.clear()


@contextlib.contextmanager
def _open(options: ExecutorOptions) -> Iterator[ExecutorFactory[Any, Any]]:
    yield InlineExecutor


backend = Backend(_open, is_sequential=True)
