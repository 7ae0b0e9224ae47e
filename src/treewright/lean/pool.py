"""Sessions kept ready: borrowed and returned, recycled, replaced when lost.

The pool keeps `size` sessions for lending and `spares` more that are already warm, so that
losing one costs its borrower nothing. New ones are started in the background, few at a time.
Waiting borrowers are served in order. Threads and asyncio tasks may share one pool.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from treewright.lean.session.async_session import AsyncLeanSession
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.interface import LeanError

DEFAULT_HEAP_BYTES = 1_200_000_000
DEFAULT_AGE_SECONDS = 3600.0
DEFAULT_USES = 10_000
_FAILURES_BEFORE_GIVING_UP = 3
_BACKOFF_SECONDS = (0.2, 1.0, 5.0)


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """When a session is replaced on its return."""

    heap_bytes: int = DEFAULT_HEAP_BYTES
    age_seconds: float = DEFAULT_AGE_SECONDS
    uses: int = DEFAULT_USES


@dataclass(frozen=True, slots=True)
class PoolStats:
    """What the pool has done and what it holds now."""

    idle: int
    lent: int
    starting: int
    waiting: int
    started: int
    recycled: int
    lost: int


@dataclass(slots=True, eq=False)
class _Entry:
    session: HostSession
    born: float
    uses: int = 0


class _Waiter:
    """Somebody waiting for a session; `deliver` is called once, with the pool's lock held."""

    def __init__(self, deliver: Callable[[_Entry | LeanError], None]) -> None:
        self.deliver = deliver


class LeanPool:
    """`factory` opens a session; it is called from background threads."""

    def __init__(
        self,
        factory: Callable[[], HostSession],
        size: int,
        *,
        spares: int = 1,
        limits: PoolLimits | None = None,
        parallel_starts: int = 1,
    ) -> None:
        if size < 1 or spares < 0 or parallel_starts < 1:
            raise ValueError("a pool needs size >= 1, spares >= 0 and parallel_starts >= 1")
        self._factory = factory
        self._size = size
        self._target = size + spares
        self._limits = limits or PoolLimits()
        self._changed = threading.Condition()
        self._idle: list[_Entry] = []
        self._lent: set[_Entry] = set()
        self._starting = 0
        self._waiters: deque[_Waiter] = deque()
        self._failures = 0
        self._closed = False
        self._started = self._recycled = self._lost = 0
        self._calls = ThreadPoolExecutor(max_workers=self._target, thread_name_prefix="lean-call")
        self._starters = [
            threading.Thread(target=self._keep_full, name=f"lean-start-{i}", daemon=True)
            for i in range(parallel_starts)
        ]
        for thread in self._starters:
            thread.start()

    def __enter__(self) -> LeanPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def stats(self) -> PoolStats:
        with self._changed:
            return PoolStats(
                len(self._idle),
                len(self._lent),
                self._starting,
                len(self._waiters),
                self._started,
                self._recycled,
                self._lost,
            )

    # -- borrowing ------------------------------------------------------------------------

    @contextlib.contextmanager
    def session(self, timeout: float | None = None) -> Iterator[HostSession]:
        """Lends a session for the length of a `with` block."""
        entry = self._acquire(timeout)
        try:
            yield entry.session
        finally:
            self._release(entry)

    @contextlib.asynccontextmanager
    async def async_session(self) -> AsyncIterator[AsyncLeanSession]:
        """The same for a task. Cancelling the task interrupts Lean and returns the session."""
        entry = await self._acquire_async()
        try:
            yield AsyncLeanSession(entry.session, self._calls)
        finally:
            # Freeing what the borrower left may take a moment; it must not block the loop,
            # and must happen whether or not the task is being cancelled.
            await asyncio.shield(asyncio.wrap_future(self._calls.submit(self._release, entry)))

    def warm_up(self, timeout: float | None = None) -> None:
        """Waits until every session and spare is ready."""
        with self._changed:
            full = self._changed.wait_for(
                lambda: (
                    self._closed
                    or self._failures >= _FAILURES_BEFORE_GIVING_UP
                    or len(self._idle) + len(self._lent) >= self._target
                ),
                timeout,
            )
            if not full or self._failures >= _FAILURES_BEFORE_GIVING_UP:
                raise LeanError(
                    "the pool's Lean sessions did not start; try: treewright lean doctor"
                )

    def close(self) -> None:
        """Ends every session, lent ones too; those who wait get an error."""
        with self._changed:
            self._closed = True
            entries = [*self._idle, *self._lent]
            self._idle.clear()
            while self._waiters:
                self._waiters.popleft().deliver(LeanError("the pool of Lean sessions is closed"))
            self._changed.notify_all()
        for entry in entries:
            entry.session.close()
        for thread in self._starters:
            thread.join()
        self._calls.shutdown(wait=True)

    def _acquire(self, timeout: float | None) -> _Entry:
        delivered: list[_Entry | LeanError] = []
        arrived = threading.Event()

        def deliver(result: _Entry | LeanError) -> None:
            delivered.append(result)
            arrived.set()

        waiter = self._enqueue(deliver)
        try:
            arrived.wait(timeout)
        except BaseException:
            self._withdraw(waiter, delivered)
            raise
        if not arrived.is_set():
            self._withdraw(waiter, delivered)
            raise LeanError(f"no Lean session became free within {timeout:g} s")
        return _unwrap(delivered[0])

    async def _acquire_async(self) -> _Entry:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        delivered: list[_Entry | LeanError] = []

        def wake() -> None:
            if not future.done():
                future.set_result(None)

        def deliver(result: _Entry | LeanError) -> None:
            delivered.append(result)
            loop.call_soon_threadsafe(wake)

        waiter = self._enqueue(deliver)
        try:
            await future
        except BaseException:
            self._withdraw(waiter, delivered)
            raise
        return _unwrap(delivered[0])

    def _enqueue(self, deliver: Callable[[_Entry | LeanError], None]) -> _Waiter:
        waiter = _Waiter(deliver)
        with self._changed:
            if self._closed:
                raise LeanError("the pool of Lean sessions is closed")
            self._waiters.append(waiter)
            self._dispatch()
        return waiter

    def _withdraw(self, waiter: _Waiter, delivered: list[_Entry | LeanError]) -> None:
        """The borrower gave up; if a session reached it all the same, that goes back."""
        with self._changed:
            with contextlib.suppress(ValueError):
                self._waiters.remove(waiter)
            got = delivered[0] if delivered else None
        if isinstance(got, _Entry):
            self._release(got)

    def _dispatch(self) -> None:
        """Gives idle sessions to those who wait. Called with the lock held."""
        while self._waiters and self._idle and len(self._lent) < self._size:
            entry = self._idle.pop()
            if not entry.session.alive:
                self._lost += 1
                self._calls.submit(entry.session.close)
                self._changed.notify_all()
                continue
            entry.uses += 1
            self._lent.add(entry)
            self._waiters.popleft().deliver(entry)

    def _release(self, entry: _Entry) -> None:
        reusable = self._reset(entry)
        with self._changed:
            if entry not in self._lent:
                return
            self._lent.discard(entry)
            if reusable and not self._closed:
                self._idle.append(entry)
            elif not entry.session.alive:
                self._lost += 1
            else:
                self._recycled += 1
            self._dispatch()
            self._changed.notify_all()
        if not reusable:
            entry.session.close()

    def _reset(self, entry: _Entry) -> bool:
        """Whether the session can be lent again, with nothing left of its last borrower."""
        limits = self._limits
        if (
            not entry.session.alive
            or entry.uses >= limits.uses
            or entry.session.heap_bytes > limits.heap_bytes
            or time.monotonic() - entry.born > limits.age_seconds
        ):
            return False
        try:
            entry.session.reset()
        except LeanError:
            return False
        return True

    # -- starting -------------------------------------------------------------------------

    def _keep_full(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._missing() > 0)
                if self._closed:
                    return
                self._starting += 1
            entry, failure = self._open()
            with self._changed:
                self._starting -= 1
                if entry is not None:
                    self._failures = 0
                    self._started += 1
                    if not self._closed:
                        self._idle.insert(0, entry)  # lent last: those in use stay in use
                        entry = None
                    self._dispatch()
                else:
                    self._fail(failure)
                self._changed.notify_all()
                if failure is not None and not self._closed:
                    pause = _BACKOFF_SECONDS[min(self._failures, len(_BACKOFF_SECONDS)) - 1]
                    self._changed.wait_for(lambda: self._closed, timeout=pause)
            if entry is not None:
                entry.session.close()  # the pool was closed meanwhile

    def _missing(self) -> int:
        return self._target - len(self._idle) - len(self._lent) - self._starting

    def _open(self) -> tuple[_Entry | None, LeanError | None]:
        try:
            return _Entry(self._factory(), time.monotonic()), None
        except LeanError as error:
            return None, error
        except Exception as error:
            return None, LeanError(f"a Lean session could not be opened: {error}")

    def _fail(self, failure: LeanError | None) -> None:
        self._failures += 1
        if self._failures >= _FAILURES_BEFORE_GIVING_UP and not self._lent:
            while self._waiters:
                self._waiters.popleft().deliver(failure or LeanError("Lean did not start"))


def _unwrap(result: _Entry | LeanError) -> _Entry:
    if isinstance(result, LeanError):
        raise result
    return result
