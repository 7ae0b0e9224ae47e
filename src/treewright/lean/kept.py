"""A process that is started when it is first needed, and again when it was lost or is used up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class Process(Protocol):
    """What is kept: it says whether it can be asked again."""

    @property
    def alive(self) -> bool: ...

    @property
    def pid(self) -> int: ...

    @property
    def heap_bytes(self) -> int: ...

    def close(self) -> None: ...


P = TypeVar("P", bound=Process)


class Kept(Generic[P]):
    """One process, or none; any thread may ask for it."""

    def __init__(self, start: Callable[[], P]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._process: P | None = None

    def get(self) -> P:
        with self._lock:
            if self._process is not None and not self._process.alive:
                self._process.close()
                self._process = None
            if self._process is None:
                self._process = self._start()
            return self._process

    def close(self) -> None:
        """Ends it. One that is being started meanwhile is not ended: close again."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    @property
    def current(self) -> P | None:
        """The process as it is, if there is one."""
        return self._process

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def heap_bytes(self) -> int:
        return self._process.heap_bytes if self._process is not None else 0
