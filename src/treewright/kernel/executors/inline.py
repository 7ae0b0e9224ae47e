"""One request at a time, in the calling thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic

from treewright.kernel.executors.base import Done, Outcome, Request


class InlineExecutor(Generic[Request, Outcome]):
    capacity = 1

    def __init__(self, work: Callable[[Request], Outcome]) -> None:
        self._work = work
        self._waiting: deque[Request] = deque()

    def submit(self, request: Request) -> None:
        self._waiting.append(request)

    def next_done(self) -> Done[Request, Outcome]:
        request = self._waiting.popleft()
        try:
            return Done(request, self._work(request))
        except Exception as error:
            return Done(request, None, error)

    def close(self, *, cancel: bool = False) -> None:
        self._waiting.clear()
