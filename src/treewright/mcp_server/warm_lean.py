"""Lean processes for one project, kept warm between calls and started again after a loss.

A `WarmLean` has two workers, one for short questions and one for proofs, so that a check does not
wait for a long search, and an edit of the project does not end the search.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from treewright.lean.hosts.host import Host
from treewright.lean.processes import LeanProcesses
from treewright.lean.project.project import Project
from treewright.lean.session.errors import MissingModule
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer
from treewright.mcp_server.call import Call

MAX_HEAP_BYTES = 1_200_000_000
"""A Lean with a larger heap is ended after the call."""
Reopen = Callable[[], tuple[Host, Project | None]]
T = TypeVar("T")


class LeanWorker:
    """The Lean processes for one kind of call. A call holds `lock` while it uses them."""

    def __init__(self, reopen: Reopen) -> None:
        self.lock = threading.Lock()
        self._reopen = reopen
        self._lean: LeanProcesses | None = None

    @property
    def lean(self) -> LeanProcesses:
        """The Lean processes; the host and the project are opened when there are none."""
        if self._lean is None:
            host, project = self._reopen()
            self._lean = LeanProcesses(host, project)
        return self._lean

    def renew_if_outdated(self) -> None:
        """End the processes if the project, a package or the toolchain changed."""
        if self._lean is not None and self._lean.is_outdated():
            self.close()

    def close(self) -> None:
        """End the processes. The next use opens host and project again."""
        lean, self._lean = self._lean, None
        if lean is not None:
            lean.close()


class WarmLean:
    """Both workers of a project."""

    def __init__(self, reopen: Reopen) -> None:
        self._short = LeanWorker(reopen)
        self._proofs = LeanWorker(reopen)
        self.used = time.monotonic()

    def ask(self, call: Call, question: Callable[[HostSession], T]) -> T:
        """Return the answer of the session for short questions.

        If the project lacks a module, the project is opened again once: the module may be new.
        """
        worker = self._short
        with self._using(call, worker):
            try:
                return _ask(call, worker.lean, question)
            except MissingModule:
                if worker.lean.project is None:
                    raise
                worker.close()
                return _ask(call, worker.lean, question)

    @contextlib.contextmanager
    def judging(self, call: Call, axioms: frozenset[str]) -> Iterator[Replayer]:
        """Lend the replay check. To interrupt the call ends its processes."""
        worker = self._proofs
        with self._using(call, worker), worker.lean.judge(axioms) as replayer:
            try:
                with call.interruptible(replayer.close, replayer.close):
                    yield replayer
            finally:
                replayer.processes.end_large(MAX_HEAP_BYTES)

    @contextlib.contextmanager
    def proving(self, call: Call) -> Iterator[LeanProcesses]:
        """Lend the processes for a search. To interrupt the call interrupts the kept session."""
        worker = self._proofs
        with self._using(call, worker):
            lean = worker.lean
            lean.kept_session()  # its start is not part of the search
            try:
                with call.interruptible(lean.cancel_kept, lean.end_kept):
                    yield lean
            finally:
                lean.end_large(MAX_HEAP_BYTES)

    def close(self) -> None:
        """End the processes of both workers."""
        self._short.close()
        self._proofs.close()

    def close_if_idle(self) -> None:
        """End the processes of both workers, unless a call uses one of them."""
        with contextlib.ExitStack() as held:
            for worker in (self._short, self._proofs):
                if not worker.lock.acquire(blocking=False):
                    return
                held.callback(worker.lock.release)
            self._short.close()
            self._proofs.close()

    @contextlib.contextmanager
    def _using(self, call: Call, worker: LeanWorker) -> Iterator[None]:
        with call.hold(worker.lock):
            worker.renew_if_outdated()
            try:
                yield
            finally:
                self.used = time.monotonic()


def _ask(call: Call, lean: LeanProcesses, question: Callable[[HostSession], T]) -> T:
    session = lean.kept_session()
    try:
        with call.interruptible(session.cancel, session.close):
            return question(session)
    finally:
        lean.end_large(MAX_HEAP_BYTES)
