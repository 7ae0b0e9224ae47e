"""One request at a time, in the calling thread."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from typing import Generic

from treewright.kernel.executors.base import Done, Outcome, Request, Worker


class InlineExecutor(Generic[Request, Outcome]):
    capacity = 1

    def __init__(self, work: Callable[[Request], Outcome]) -> None:
        self._work = work
        self._waiting: deque[Request] = deque()
        self._worker = Worker("main", os.getpid())

    def submit(self, request: Request) -> None:
        self._waiting.append(request)

    def next_done(self, timeout: float | None = None) -> Done[Request, Outcome] | None:
        if not self._waiting:
            time.sleep(timeout or 0)
            return None
        request = self._waiting.popleft()
        try:
            return Done(request, self._work(request), worker=self._worker)
        except Exception as error:
            return Done(request, None, error, self._worker)

    def close(self) -> None:
        self._waiting.clear()
