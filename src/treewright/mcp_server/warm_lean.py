"""One Lean for one project, or for none: kept warm between calls, made again when it was lost.

A worker has a session and, when it is needed, a replay check; it does one thing at a time. A place
has two: one for short questions and one for proofs, so that a long search makes nobody wait who
only wants a text checked, and an edit of the project does not end it.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from treewright.lean.hosts.host import Host
from treewright.lean.kept import Kept
from treewright.lean.project.project import Project
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.interface import MissingModule
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS
from treewright.mcp_server.call import Call

MOST_HEAP_BYTES = 1_200_000_000
"""A Lean whose heap has grown beyond this is ended after the call, whatever it is there for."""
Reopen = Callable[[], tuple[Host, Project | None]]
T = TypeVar("T")


class LeanWorker:
    """`reopen` gives host and project as they are now. Whoever uses it holds `lock`."""

    def __init__(self, reopen: Reopen) -> None:
        self.lock = threading.Lock()
        self._reopen = reopen
        self._opened: tuple[Host, Project | None] | None = None
        self._built = 0.0
        self._session = Kept(self.another)
        self._replayer: Replayer | None = None

    @property
    def host(self) -> Host:
        return self._open()[0]

    @property
    def project(self) -> Project | None:
        return self._open()[1]

    @property
    def session(self) -> HostSession:
        return self._session.get()

    @property
    def replayer(self) -> Replayer:
        if self._replayer is None:
            self._replayer = self.new_replayer(DEFAULT_AXIOMS)
        return self._replayer

    def another(self) -> HostSession:
        """A session beside the one that is kept."""
        host, project = self._open()
        return HostSession(host, project=project)

    def new_replayer(self, axioms: frozenset[str]) -> Replayer:
        host, project = self._open()
        return Replayer(host, axioms=axioms, project=project)

    def refresh(self) -> None:
        """Begins anew where the project, its packages or the toolchain are no longer what the
        processes have read."""
        if self._opened is None:
            return
        host, project = self._opened
        edited = project is not None and project.changed()
        if edited or _last_build(host) != self._built or host.changed(()):
            self.renew()

    def renew(self) -> None:
        self.close()
        self._opened = None

    def close(self) -> None:
        self._session.close()
        replayer, self._replayer = self._replayer, None
        if replayer is not None:
            replayer.close()

    def _open(self) -> tuple[Host, Project | None]:
        if self._opened is None:
            self._opened = self._reopen()
            self._built = _last_build(self._opened[0])
        return self._opened


class WarmLean:
    """Both benches of a project."""

    def __init__(self, reopen: Reopen) -> None:
        self._short = LeanWorker(reopen)
        self._proofs = LeanWorker(reopen)
        self.used = time.monotonic()

    def ask(self, call: Call, question: Callable[[HostSession], T]) -> T:
        """An answer of the session for short questions.

        A project that has not got a module is read again once: it may be new.
        """
        worker = self._short
        with self._using(call, worker):
            try:
                return _asked(call, worker.session, question)
            except MissingModule:
                if worker.project is None:
                    raise
                worker.renew()
                return _asked(call, worker.session, question)

    @contextlib.contextmanager
    def judging(self, call: Call, axioms: frozenset[str]) -> Iterator[Replayer]:
        """The replay check; one of its own for axioms that are not Lean's."""
        worker = self._proofs
        with self._using(call, worker):
            kept = axioms == DEFAULT_AXIOMS
            replayer = worker.replayer if kept else worker.new_replayer(axioms)
            try:
                # There is no gentle way to interrupt a judge.
                with call.interruptible(replayer.close, replayer.close):
                    yield replayer
            finally:
                if not kept:
                    replayer.close()
                replayer.processes.end_large(MOST_HEAP_BYTES)
                if replayer.stale:
                    worker.renew()

    @contextlib.contextmanager
    def proving(self, call: Call) -> Iterator[tuple[LeanWorker, Callable[[], HostSession]]]:
        """The worker for a search, and what makes further sessions; a stop interrupts them all."""
        worker = self._proofs
        with self._using(call, worker):
            made = [worker.session]
            replayer = worker.replayer

            def another() -> HostSession:
                made.append(worker.another())
                return made[-1]

            def cancel() -> None:
                for each in made:
                    each.cancel()

            def end() -> None:
                for each in made:
                    each.close()
                replayer.close()

            try:
                with call.interruptible(cancel, end):
                    yield worker, another
            finally:
                for each in made[1:]:
                    each.close()
                _end_if_large(made[0])
                replayer.processes.end_large(MOST_HEAP_BYTES)
                if replayer.stale:
                    worker.renew()

    def close(self) -> None:
        self._short.close()
        self._proofs.close()

    def close_if_idle(self) -> None:
        """Ends its processes, and forgets what they read, unless somebody uses them."""
        with contextlib.ExitStack() as held:
            for worker in (self._short, self._proofs):
                if not worker.lock.acquire(blocking=False):
                    return
                held.callback(worker.lock.release)
            self._short.renew()
            self._proofs.renew()

    @contextlib.contextmanager
    def _using(self, call: Call, worker: LeanWorker) -> Iterator[None]:
        with call.hold(worker.lock):
            worker.refresh()
            try:
                yield
            finally:
                self.used = time.monotonic()


def _asked(call: Call, session: HostSession, question: Callable[[HostSession], T]) -> T:
    try:
        with call.interruptible(session.cancel, session.close):
            return question(session)
    finally:
        _end_if_large(session)


def _end_if_large(session: HostSession) -> None:
    if session.heap_bytes > MOST_HEAP_BYTES:
        session.close()


def _last_build(host: Host) -> float:
    """When the modules of a toolchain's project were compiled; nothing for the bundled Lean."""
    project: Path | None = getattr(host, "project", None)
    if project is None:
        return 0.0
    last = 0.0
    for where, _, names in os.walk(project / ".lake" / "build" / "lib"):
        for name in names:
            if name.endswith(".olean"):
                with contextlib.suppress(FileNotFoundError):  # Lake is at work
                    last = max(last, Path(where, name).stat().st_mtime)
    return last
