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
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from treewright.kernel.errors import TreewrightError
from treewright.lean.hosts.host import Host
from treewright.lean.project.project import Project
from treewright.lean.session.async_session import AsyncLeanSession
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.interface import LeanError
from treewright.lean.verify.replayer import Replayer
from treewright.lean.verify.verdict import DEFAULT_AXIOMS

_FAILURES_BEFORE_GIVING_UP = 3
_BACKOFF_SECONDS = (0.2, 1.0, 5.0)


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


@dataclass(slots=True, eq=False)
class _Request:
    """A waiting borrower. `deliver` is called once, while the lock is held."""

    deliver: Callable[[_Lendable | LeanError], None]


class LeanProcesses:
    """The Lean processes of one owner, for one Lean and one Lake project.

    No process is started before it is needed; `start` starts the usual ones in advance. Closing
    ends every process that this object started, except sessions that `new_session` returned.

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
        self._kept: HostSession | None = None
        self._keeping = threading.Lock()
        self._in_advance: Future[HostSession] | None = None
        self._starting: ThreadPoolExecutor | None = None
        # Lending:
        self._changed = threading.Condition()
        self._idle: list[_Lendable] = []
        self._lent: set[_Lendable] = set()
        self._requests: deque[_Request] = deque()
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
            self._in_advance = self._starting.submit(self._open_session)
            for start in self.replayer.processes.starts():
                self._starting.submit(_ignore_problem, start)

    def new_session(self) -> HostSession:
        """Return a session that the caller has to close.

        The first call after `start` returns the session that was started in advance.
        """
        session, self._in_advance = self._in_advance, None
        return session.result() if session is not None else self._open_session()

    def kept_session(self) -> HostSession:
        """Return the same session each time, with its proof states; another one if it was lost."""
        with self._keeping:
            if self._kept is not None and not self._kept.alive:
                self._kept.close()
                self._kept = None
            if self._kept is None:
                self._kept = self.new_session()
            return self._kept

    @contextlib.contextmanager
    def session(self, timeout: float | None = None) -> Iterator[HostSession]:
        """Lend a session, which is emptied when it is returned.

        Args:
            timeout: seconds to wait while all sessions are lent (default: no limit).

        Raises:
            LeanError: no session became free in time, or Lean does not start.
        """
        lendable = self._acquire(timeout)
        try:
            yield lendable.session
        finally:
            self._release(lendable)

    @contextlib.asynccontextmanager
    async def async_session(self) -> AsyncIterator[AsyncLeanSession]:
        """Lend a session to a task. Cancelling the task interrupts Lean and returns the session."""
        lendable = await self._acquire_async()
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
        kept = self._kept
        if kept is not None and kept.heap_bytes > heap_bytes:
            kept.close()
        self.replayer.processes.end_large(heap_bytes)

    def cancel_kept(self) -> None:
        """Cancel the request that runs in the kept session, if there is one."""
        if self._kept is not None:
            self._kept.cancel()

    def end_kept(self) -> None:
        """End the kept session and the processes of the replay check; the next call restarts them.

        A request that runs in another thread meanwhile ends as lost.
        """
        if self._kept is not None:
            self._kept.close()
        self.replayer.close()

    def close(self) -> None:
        """End every process, also lent sessions. Waiting requests get a LeanError."""
        with self._changed:
            self._is_closed = True
            lendable = [*self._idle, *self._lent]
            self._idle.clear()
            while self._requests:
                self._requests.popleft().deliver(LeanError("the Lean processes are closed"))
            self._changed.notify_all()
        for each in lendable:
            each.session.close()
        if self._starter is not None:
            self._starter.join()
        self._calls.shutdown(wait=True)
        if self._starting is not None:
            self._starting.shutdown(wait=True, cancel_futures=True)
        session, self._in_advance = self._in_advance, None
        if session is not None and not session.cancelled() and session.exception() is None:
            session.result().close()
        self.end_kept()

    # -- lending --------------------------------------------------------------------------

    def _open_session(self) -> HostSession:
        return HostSession(self.host, project=self.project)

    def _acquire(self, timeout: float | None) -> _Lendable:
        delivered: list[_Lendable | LeanError] = []
        arrived = threading.Event()

        def deliver(result: _Lendable | LeanError) -> None:
            delivered.append(result)
            arrived.set()

        request = self._enqueue(deliver)
        try:
            arrived.wait(timeout)
        except BaseException:
            self._withdraw(request, delivered)
            raise
        if not arrived.is_set():
            self._withdraw(request, delivered)
            raise LeanError(f"no Lean session became free within {timeout:g} s")
        return _require_session(delivered[0])

    async def _acquire_async(self) -> _Lendable:
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[None] = loop.create_future()
        delivered: list[_Lendable | LeanError] = []

        def wake() -> None:
            if not arrived.done():
                arrived.set_result(None)

        def deliver(result: _Lendable | LeanError) -> None:
            delivered.append(result)
            loop.call_soon_threadsafe(wake)

        request = self._enqueue(deliver)
        try:
            await arrived
        except BaseException:
            self._withdraw(request, delivered)
            raise
        return _require_session(delivered[0])

    def _enqueue(self, deliver: Callable[[_Lendable | LeanError], None]) -> _Request:
        request = _Request(deliver)
        with self._changed:
            if self._is_closed:
                raise LeanError("the Lean processes are closed")
            self._requests.append(request)
            self._start_lending()
            self._dispatch()
        return request

    def _withdraw(self, request: _Request, delivered: list[_Lendable | LeanError]) -> None:
        """Cancel a request. A session that was delivered meanwhile is returned."""
        with self._changed:
            with contextlib.suppress(ValueError):
                self._requests.remove(request)
            result = delivered[0] if delivered else None
        if isinstance(result, _Lendable):
            self._release(result)

    def _dispatch(self) -> None:
        """Give idle sessions to waiting requests. The caller holds the lock."""
        while self._requests and self._idle and len(self._lent) < self._limits.sessions:
            lendable = self._idle.pop()
            if not lendable.session.alive:
                self._lost += 1
                self._calls.submit(lendable.session.close)
                self._changed.notify_all()
                continue
            lendable.uses += 1
            self._lent.add(lendable)
            self._requests.popleft().deliver(lendable)

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
            lendable = None
            try:
                lendable = _Lendable(self._open_session(), time.monotonic())
            except LeanError as error:
                problem = error
            except Exception as error:
                problem = LeanError(f"a Lean session could not be opened: {error}")
            with self._changed:
                if lendable is not None:
                    self._failures = 0
                    self._started += 1
                    if not self._is_closed:
                        self._idle.insert(0, lendable)  # used sessions are lent before new ones
                        lendable = None
                    self._dispatch()
                elif problem is not None:
                    self._fail(problem)
                self._changed.notify_all()
                if problem is not None and not self._is_closed:
                    pause = _BACKOFF_SECONDS[min(self._failures, len(_BACKOFF_SECONDS)) - 1]
                    self._changed.wait_for(lambda: self._is_closed, timeout=pause)
            if lendable is not None:
                lendable.session.close()  # closed while the session was starting

    def _fail(self, problem: LeanError) -> None:
        """Count a failed start; after several, answer waiting requests with the problem."""
        self._failures += 1
        if self._failures >= _FAILURES_BEFORE_GIVING_UP and not self._lent:
            while self._requests:
                self._requests.popleft().deliver(problem)


def _require_session(result: _Lendable | LeanError) -> _Lendable:
    if isinstance(result, LeanError):
        raise result
    return result


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
