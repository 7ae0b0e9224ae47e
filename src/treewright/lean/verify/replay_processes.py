"""The three processes of a replay check: started when needed, renewed, ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from treewright.lean.hosts.host import Host
from treewright.lean.project.project import Project
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.process import RestartedProcess
from treewright.lean.verify.judge import Judge
from treewright.lean.verify.originals import OriginalReader

RENEW_AFTER = 200
"""The process that reads candidates is replaced after this many checks."""
RENEW_HEAP_BYTES = 1_200_000_000
P = ParamSpec("P")
T = TypeVar("T")


class ReplayProcesses:
    """The reader of candidates, the reader of originals, and the judge, for one check at a time."""

    def __init__(self, host: Host, project: Project | None) -> None:
        self.reader = RestartedProcess(lambda: HostSession(host, project=project))
        self.original = RestartedProcess(lambda: OriginalReader(host, project))
        self.judge = RestartedProcess(lambda: Judge(host.judging()))
        self._threads = _new_threads()
        self._checks = 0

    def all(self) -> tuple[RestartedProcess[Any], ...]:
        """Return the three processes."""
        return (self.reader, self.original, self.judge)

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the processes that run now."""
        return tuple(pid for process in self.all() if (pid := process.pid) is not None)

    def starts(self) -> tuple[Callable[[], object], ...]:
        """Return a function for each process that starts it, in the order of use."""
        return (self.original.get, self.reader.get, self.judge.get)

    def warm_up(self) -> None:
        """Start all three at the same time, and wait for them."""
        first, *rest = self.starts()
        others = [self.run_in_thread(start) for start in rest]
        first()
        for other in others:
            other.result()

    def run_in_thread(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run work beside the caller's thread."""
        return self._threads.submit(work, *args, **kwargs)

    def renew(self) -> None:
        """Replace processes that have grown or were used often. Called before each check."""
        self.end_large(RENEW_HEAP_BYTES)
        if self._checks >= RENEW_AFTER:
            self.reader.close()
            self._checks = 0
        self._checks += 1

    def end_large(self, heap_bytes: int) -> None:
        """End the processes with a larger heap, because a heap never shrinks."""
        for process in self.all():
            if process.heap_bytes > heap_bytes:
                process.close()

    def end(self) -> None:
        """End all at the same time, because each takes a while to return its memory."""
        ending = [threading.Thread(target=process.close) for process in self.all()]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join()

    def close(self) -> None:
        """End all, also a process that is being started in a thread."""
        self.end()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._threads = _new_threads()
        self.end()


def _new_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix="replay-check")
