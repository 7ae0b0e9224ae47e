"""`LeanProcesses`: starts, lends, renews and ends the Lean processes of one program.

Sessions are lent in the order of the requests, to threads and to asyncio tasks. The replay check
has three separate processes, which are never lent as sessions: the judge must not have read any
generated text.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from treewright.kernel.errors import TreewrightError
from treewright.lean.hosts.host import Host
from treewright.lean.project.project import Project
from treewright.lean.session.async_session import AsyncLeanSession
from treewright.lean.session.errors import LeanError
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.process import RestartedProcess
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS

_FAILURES_BEFORE_GIVING_UP = 3
_BACKOFF_SECONDS = (0.2, 1.0, 5.0)
_CLOSED = "the Lean processes are closed"


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How many sessions are lent at once, and when a returned session is replaced.

    Args:
        sessions: the most sessions that are lent at once.
        spares: sessions that are started in advance, besides the lent ones.
        heap_bytes: a session with a larger heap is ended when it is returned.
        age_seconds: an older session is ended when it is returned.
        uses: a session that was lent this many times is ended when it is returned.
    """

    sessions: int = 1
    spares: int = 0
    heap_bytes: int = 1_200_000_000
    age_seconds: float = 3600.0
    uses: int = 10_000

    def __post_init__(self) -> None:
        if self.sessions < 1 or self.spares < 0:
            raise ValueError("at least one Lean session is needed, and no negative spares")


@dataclass(frozen=True, slots=True)
class LendingStats:
    """Counts of sessions: now (idle, lent, waiting requests), and since the start."""

    idle: int
    lent: int
    waiting: int
    started: int
    recycled: int
    lost: int


@dataclass(slots=True, eq=False)
class _Lendable:
    """A session that is lent again and again, with its age and the number of its uses."""

    session: HostSession
    started_at: float
    uses: int = 0


class LeanProcesses:
    """The Lean processes of one owner, for one Lean and one Lake project.

    No process is started before it is needed; `start` starts the usual ones in advance. Closing
    ends every process that this object started.

    Args:
        host: which Lean is started.
        project: the Lake project that the processes may import modules of.
        axioms: the axioms that proofs may rest on, for the replay check.
        limits: how many sessions are lent, and when they are replaced.
    """

    def __init__(
        self,
        host: Host,
        project: Project | None = None,
        *,
        axioms: frozenset[str] = DEFAULT_AXIOMS,
        limits: SessionLimits | None = None,
    ) -> None:
        self.host = host
        self.project = project
        self.replayer = Replayer(host, axioms=axioms, project=project)
        self._axioms = axioms
        self._is_stale = False  # a separate replay check of `judge` found a changed file
        self._limits = limits or SessionLimits()
        self._target = self._limits.sessions + self._limits.spares
        self._last_build = _last_build(host)
        self._kept = RestartedProcess(self.new_session)
        self._in_advance: Future[HostSession] | None = None
        self._starting: ThreadPoolExecutor | None = None
        self._sessions: list[HostSession] = []  # that may be alive
        # Lending:
        self._changed = threading.Condition()
        self._idle: list[_Lendable] = []
        self._lent: set[_Lendable] = set()
        self._requests: deque[Future[_Lendable]] = deque()
        self._is_closed = False
        self._failures = self._started = self._recycled = self._lost = 0
        self._starter: threading.Thread | None = None
        self._calls = ThreadPoolExecutor(max_workers=self._target, thread_name_prefix="lean-call")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- sessions -------------------------------------------------------------------------

    def start(self) -> None:
        """Start a session and the replay check in the background.

        As many processes start at once as there are cores, in the order in which a proof run needs
        them. `new_session` returns the session; a problem is reported when a process is needed.
        """
        if self._starting is None:
            cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
            self._starting = ThreadPoolExecutor(max(2, cores), thread_name_prefix="lean-start")
            self._in_advance = self._starting.submit(self._start_session)
            for start in self.replayer.processes.starts():
                self._starting.submit(_ignore_problem, start)

    def new_session(self, imports: Sequence[str] = ("Init",), preamble: str = "") -> HostSession:
        """Return a session, which the caller may close before this object is closed.

        The first session without other imports, after `start`, is the one started in advance.
        """
        if tuple(imports) == ("Init",) and not preamble:
            session, self._in_advance = self._in_advance, None
            if session is not None:
                return session.result()
        return self._start_session(imports, preamble)

    def kept_session(self) -> HostSession:
        """Return the same session each time, with its proof states; another one if it was lost."""
        return self._kept.get()

    @contextlib.contextmanager
    def session(self, timeout: float | None = None) -> Iterator[HostSession]:
        """Lend a session, which is emptied when it is returned.

        Args:
            timeout: seconds to wait while all sessions are lent (default: no limit).

        Raises:
            LeanError: no session became free in time, or Lean does not start.
        """
        request = self._request()
        try:
            lendable = request.result(timeout)
        except BaseException as problem:
            self._withdraw(request)
            if isinstance(problem, TimeoutError):
                message = f"no Lean session became free within {timeout:g} s"
                raise LeanError(message) from None
            raise
        try:
            yield lendable.session
        finally:
            self._release(lendable)

    @contextlib.asynccontextmanager
    async def async_session(self) -> AsyncIterator[AsyncLeanSession]:
        """Lend a session to a task. Cancelling the task interrupts Lean and returns the session."""
        request = self._request()
        try:
            lendable = await asyncio.wrap_future(request)
        except BaseException:
            self._withdraw(request)
            raise
        try:
            yield AsyncLeanSession(lendable.session, self._calls)
        finally:
            # Emptying the session takes a moment. It must not block the event loop, and it must
            # happen although the task may be cancelled.
            await asyncio.shield(asyncio.wrap_future(self._calls.submit(self._release, lendable)))

    def wait_until_ready(self, timeout: float | None = None) -> None:
        """Wait until every session that may be lent, and every spare, is started."""
        with self._changed:
            self._start_lending()
            is_full = self._changed.wait_for(
                lambda: (
                    self._is_closed
                    or self._failures >= _FAILURES_BEFORE_GIVING_UP
                    or len(self._idle) + len(self._lent) >= self._target
                ),
                timeout,
            )
            if not is_full or self._failures >= _FAILURES_BEFORE_GIVING_UP:
                raise LeanError("the Lean sessions did not start; try: treewright lean doctor")

    @property
    def stats(self) -> LendingStats:
        """Counts of sessions."""
        with self._changed:
            return LendingStats(
                len(self._idle),
                len(self._lent),
                len(self._requests),
                self._started,
                self._recycled,
                self._lost,
            )

    # -- the replay check -----------------------------------------------------------------

    @contextlib.contextmanager
    def judge(self, axioms: frozenset[str] | None = None) -> Iterator[Replayer]:
        """Lend the whole replay check, of which the judge is one process.

        With other axioms than this object's, the block gets a separate replay check, which ends
        with the block. Two threads must not use a replay check at once.
        """
        if axioms is None or axioms == self._axioms:
            yield self.replayer
        else:
            other = Replayer(self.host, axioms=axioms, project=self.project)
            with contextlib.closing(other) as replayer:
                try:
                    yield replayer
                finally:
                    self._is_stale = self._is_stale or replayer.stale

    # -- renewing and ending --------------------------------------------------------------

    def is_outdated(self) -> bool:
        """Whether the project, its packages or the toolchain changed since Lean read them."""
        return (
            self._is_stale
            or self.replayer.stale
            or (self.project is not None and bool(self.project.changed()))
            or _last_build(self.host) != self._last_build
            or bool(self.host.changed(()))
        )

    def end_large(self, heap_bytes: int) -> None:
        """End processes with a larger heap, because a heap never shrinks. Lent ones stay."""
        if self._kept.heap_bytes > heap_bytes:
            self._kept.close()
        self.replayer.processes.end_large(heap_bytes)

    def cancel_kept(self) -> None:
        """Cancel the request that runs in the kept session, if there is one."""
        if (kept := self._kept.current) is not None:
            kept.cancel()

    def end_kept(self) -> None:
        """End the kept session and the processes of the replay check; the next call restarts them.

        A request that runs in another thread meanwhile ends as lost.
        """
        self._kept.close()
        self.replayer.close()

    def close(self) -> None:
        """End every process, also lent sessions. Waiting requests get a LeanError."""
        with self._changed:
            self._is_closed = True
            self._idle.clear()
            self._refuse_requests(LeanError(_CLOSED))
            self._changed.notify_all()
            sessions = self._sessions
        for session in sessions:
            session.close()
        if self._starter is not None:
            self._starter.join()
        self._calls.shutdown(wait=True)
        if self._starting is not None:
            self._starting.shutdown(wait=True, cancel_futures=True)
        self.replayer.close()

    def _start_session(self, imports: Sequence[str] = ("Init",), preamble: str = "") -> HostSession:
        session = HostSession(self.host, imports, preamble, project=self.project)
        with self._changed:
            self._sessions = [*(each for each in self._sessions if each.alive), session]
            is_closed = self._is_closed
        if is_closed:
            session.close()
            raise LeanError(_CLOSED)
        return session

    # -- lending --------------------------------------------------------------------------

    def _request(self) -> Future[_Lendable]:
        request: Future[_Lendable] = Future()
        with self._changed:
            if self._is_closed:
                raise LeanError(_CLOSED)
            self._requests.append(request)
            self._start_lending()
            self._dispatch()
        return request

    def _withdraw(self, request: Future[_Lendable]) -> None:
        """Cancel a request. A session that was delivered meanwhile is returned."""
        with self._changed:
            with contextlib.suppress(ValueError):
                self._requests.remove(request)
            is_delivered = not request.cancel() and request.exception() is None
        if is_delivered:
            self._release(request.result())

    def _dispatch(self) -> None:
        """Give idle sessions to waiting requests. The caller holds the lock."""
        for lendable in [each for each in self._idle if not each.session.alive]:
            self._idle.remove(lendable)
            self._lost += 1
            self._calls.submit(lendable.session.close)
            self._changed.notify_all()
        while self._requests and self._idle and len(self._lent) < self._limits.sessions:
            request = self._requests.popleft()
            if request.set_running_or_notify_cancel():
                lendable = self._idle.pop()
                lendable.uses += 1
                self._lent.add(lendable)
                request.set_result(lendable)

    def _refuse_requests(self, problem: LeanError) -> None:
        """Answer every waiting request with a problem. The caller holds the lock."""
        while self._requests:
            request = self._requests.popleft()
            if request.set_running_or_notify_cancel():
                request.set_exception(problem)

    def _release(self, lendable: _Lendable) -> None:
        session, limits = lendable.session, self._limits
        is_reusable = (
            session.alive
            and lendable.uses < limits.uses
            and session.heap_bytes <= limits.heap_bytes
            and time.monotonic() - lendable.started_at <= limits.age_seconds
        )
        if is_reusable:
            try:
                session.reset()
            except LeanError:
                is_reusable = False
        with self._changed:
            if lendable not in self._lent:
                return
            self._lent.discard(lendable)
            if is_reusable and not self._is_closed:
                self._idle.append(lendable)
            elif not session.alive:
                self._lost += 1
            else:
                self._recycled += 1
            self._dispatch()
            self._changed.notify_all()
        if not is_reusable:
            session.close()

    def _start_lending(self) -> None:
        if self._starter is None:
            self._starter = threading.Thread(
                target=self._keep_full, name="lean-starter", daemon=True
            )
            self._starter.start()

    def _keep_full(self) -> None:
        """Start missing sessions, one after the other, until `close`."""
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._is_closed or len(self._idle) + len(self._lent) < self._target
                )
                if self._is_closed:
                    return
            problem = None
            session = None
            try:
                session = self._start_session()
            except LeanError as error:
                problem = error
            except Exception as error:
                problem = LeanError(f"a Lean session could not be opened: {error}")
            with self._changed:
                if session is not None:
                    self._failures = 0
                    self._started += 1
                    if not self._is_closed:  # `close` ends the session otherwise
                        # Used sessions are lent before new ones.
                        self._idle.insert(0, _Lendable(session, time.monotonic()))
                        self._dispatch()
                elif problem is not None:
                    self._failures += 1
                    if self._failures >= _FAILURES_BEFORE_GIVING_UP and not self._lent:
                        self._refuse_requests(problem)
                self._changed.notify_all()
                if problem is not None and not self._is_closed:
                    pause = _BACKOFF_SECONDS[min(self._failures, len(_BACKOFF_SECONDS)) - 1]
                    self._changed.wait_for(lambda: self._is_closed, timeout=pause)


def _ignore_problem(start: Callable[[], object]) -> None:
    """Start a process in advance. Its problem is reported when the process is needed."""
    with contextlib.suppress(TreewrightError):
        start()


def _last_build(host: Host) -> float:
    """Return when Lake last compiled a module of the toolchain's project; 0 for bundled Lean."""
    project: Path | None = getattr(host, "project", None)
    if project is None:
        return 0.0
    last = 0.0
    for where, _, names in os.walk(project / ".lake" / "build" / "lib"):
        for name in names:
            if name.endswith(".olean"):
                with contextlib.suppress(FileNotFoundError):  # Lake may be replacing the file
                    last = max(last, Path(where, name).stat().st_mtime)
    return last
