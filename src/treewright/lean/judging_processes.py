"""The three processes of a replay check: started when needed, kept, ended, renewed.

What is asked of them, and what follows from their answers, is `replay`'s.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from treewright.lean.hosts.host import Host
from treewright.lean.kept import Kept
from treewright.lean.project.project import Project
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.judge import Judge
from treewright.lean.verify.reader import OriginalReader

RENEW_AFTER = 200
RENEW_HEAP_BYTES = 1_200_000_000
P = ParamSpec("P")
T = TypeVar("T")


class JudgingProcesses:
    """Who reads the candidate, who reads the original, and the judge. For one check at a time."""

    def __init__(self, home: Host, project: Project | None) -> None:
        self.reader = Kept(lambda: HostSession(home, project=project))
        self.original = Kept(lambda: OriginalReader(home, project))
        self.judge = Kept(lambda: Judge(home.judging()))
        self._side = _threads()
        self._checks = 0

    def all(self) -> tuple[Kept[Any], ...]:
        return (self.reader, self.original, self.judge)

    @property
    def pids(self) -> tuple[int, ...]:
        """Of those that run now."""
        return tuple(pid for kept in self.all() if (pid := kept.pid) is not None)

    def starts(self) -> tuple[Callable[[], object], ...]:
        """What starts each if it is not there, in the order in which a check needs them."""
        return (self.original.get, self.reader.get, self.judge.get)

    def warm_up(self) -> None:
        """Starts them, side by side."""
        first, *rest = self.starts()
        others = [self.aside(start) for start in rest]
        first()
        for other in others:
            other.result()

    def aside(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Does something in a thread beside."""
        return self._side.submit(work, *args, **kwargs)

    def renew(self) -> None:
        """Before a check: those that have grown, or have read too much, give way to others."""
        self.end_large(RENEW_HEAP_BYTES)
        if self._checks >= RENEW_AFTER:
            self.reader.close()
            self._checks = 0
        self._checks += 1

    def end_large(self, most_bytes: int) -> None:
        """Ends those whose heap has grown beyond that: a heap never gets smaller again."""
        for kept in self.all():
            if kept.heap_bytes > most_bytes:
                kept.close()

    def end(self) -> None:
        """All at once: each takes a while to give its memory back."""
        ending = [threading.Thread(target=kept.close) for kept in self.all()]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join()

    def close(self) -> None:
        """Ends them, also one that is being started aside."""
        self.end()
        self._side.shutdown(wait=True, cancel_futures=True)
        self._side = _threads()
        self.end()


def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix="judge")
