"""A session for asyncio: the same methods, awaitable; cancelling one interrupts Lean."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, Concatenate, ParamSpec, TypeVar

from treewright.lean.session.answers import Declaration, SessionInfo
from treewright.lean.session.host_session import HostSession

CANCEL_GRACE_SECONDS = 1.0
_CANCEL_AGAIN_SECONDS = 0.1
P = ParamSpec("P")
T = TypeVar("T")


def _awaitable(
    method: Callable[Concatenate[HostSession, P], T],
) -> Callable[Concatenate[AsyncLeanSession, P], Coroutine[Any, Any, T]]:
    """Return a method of a session as an awaitable method of `AsyncLeanSession`."""

    @functools.wraps(method)
    async def call(self: AsyncLeanSession, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(lambda lean: getattr(lean, method.__name__)(*args, **kwargs))

    return call


class AsyncLeanSession:
    """A wrapper around a session. Calls run in `executor`, one at a time.

    When the awaiting task is cancelled, Lean is interrupted. The task ends when Lean has stopped,
    so that the session can be used again at once. If Lean does not stop within a second, its
    process is killed.
    """

    def __init__(self, session: HostSession, executor: Executor | None = None) -> None:
        self._session = session
        self._executor = executor

    @property
    def info(self) -> SessionInfo:
        """Which Lean this is."""
        return self._session.info

    @property
    def alive(self) -> bool:
        """Whether the Lean process runs."""
        return self._session.alive

    @property
    def pid(self) -> int:
        """The id of the Lean process."""
        return self._session.pid

    start = _awaitable(HostSession.start)
    start_declaration = _awaitable(HostSession.start_declaration)
    run_tactic = _awaitable(HostSession.run_tactic)
    focus = _awaitable(HostSession.focus)
    check = _awaitable(HostSession.check)
    audit = _awaitable(HostSession.audit)
    free = _awaitable(HostSession.free)

    async def declarations(
        self, prefix: str = "", module: str = "", *, types: bool = True
    ) -> tuple[Declaration, ...]:
        """Return the imported declarations by name."""
        return await self.run(lambda lean: tuple(lean.declarations(prefix, module, types=types)))

    async def close(self) -> None:
        """End the process."""
        await asyncio.to_thread(self._session.close)

    async def run(self, work: Callable[[HostSession], T], stop: threading.Event | None = None) -> T:
        """Run blocking work on the session, and return its result.

        When the awaiting task is cancelled, the running step is interrupted. Work of many steps has
        to end soon after `stop` is set, which happens then too.
        """
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._executor, work, self._session)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if stop is not None:
                stop.set()
            deadline = loop.time() + CANCEL_GRACE_SECONDS
            while not future.done() and loop.time() < deadline:
                # Repeated, because a cancel between two steps of the work has no effect.
                self._session.cancel()
                await asyncio.wait([future], timeout=_CANCEL_AGAIN_SECONDS)
            if not future.done():
                await asyncio.shield(asyncio.to_thread(self._session.close))
            raise
