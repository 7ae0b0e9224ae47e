"""A session and a replay check for one Lean, started side by side while others work.

A process takes half a second of one core to start. So no more start at once than there are
cores, in the order in which they are needed: the session, who reads the original, who reads the
candidate, the judge. Whoever needs one earlier waits for it, and no longer.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Self

from treewright.kernel.errors import TreewrightError
from treewright.lean.hosts.host import Host
from treewright.lean.project.project import Project
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS


class Crew:
    """The processes of one proof run. Closed, it leaves none behind, whoever started it."""

    def __init__(
        self,
        host: Host,
        *,
        axioms: frozenset[str] = DEFAULT_AXIOMS,
        project: Project | None = None,
    ) -> None:
        self.host = host
        self.project = project
        self.replayer = Replayer(host, axioms=axioms, project=project)
        self._starting = ThreadPoolExecutor(max(2, _cores()), thread_name_prefix="start")
        self._first: Future[HostSession] | None = self._starting.submit(self._new_session)
        for start in self.replayer.processes.starts():
            self._starting.submit(_quietly, start)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def session(self) -> HostSession:
        """The one that was started at the beginning; after that, another one each time."""
        first, self._first = self._first, None
        return first.result() if first is not None else self._new_session()

    def close(self) -> None:
        """Ends the replay check, and the session that nobody asked for."""
        self._starting.shutdown(wait=True, cancel_futures=True)
        first, self._first = self._first, None
        if first is not None and not first.cancelled() and first.exception() is None:
            first.result().close()
        self.replayer.close()

    def _new_session(self) -> HostSession:
        return HostSession(self.host, project=self.project)


def _quietly(start: Callable[[], object]) -> None:
    """What is wrong is said when the process is needed: it is started again then."""
    with contextlib.suppress(TreewrightError):
        start()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
