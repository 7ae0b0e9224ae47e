"""A session for asyncio: the same methods, awaitable; cancelling one interrupts Lean."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from treewright.lean.session.answers import (
    AuditReport,
    CheckResult,
    Declaration,
    ProofState,
    SessionInfo,
    SessionLost,
    StepResult,
    TacticError,
    Timeout,
)
from treewright.lean.session.inputs import Parser
from treewright.lean.session.interface import (
    DEFAULT_CHECK_SECONDS,
    DEFAULT_STEP_SECONDS,
    LeanError,
    LeanSession,
)

CANCEL_GRACE_SECONDS = 1.0
_CANCEL_AGAIN_SECONDS = 0.1
T = TypeVar("T")


class AsyncLeanSession:
    """A wrapper around a session. Calls run in `executor`, one at a time.

    When the awaiting task is cancelled, Lean is interrupted. The task ends when Lean has stopped,
    so that the session can be used again at once. If Lean does not stop within a second, its
    process is killed.
    """

    def __init__(self, session: LeanSession, executor: Executor | None = None) -> None:
        self._session = session
        self._executor = executor

    @property
    def info(self) -> SessionInfo:
        return self._session.info

    @property
    def alive(self) -> bool:
        return self._session.alive

    @property
    def pid(self) -> int | None:
        """The id of the Lean process, if the session has its own process."""
        return getattr(self._session, "pid", None)

    async def start(self, statement: str, *, timeout: float = DEFAULT_STEP_SECONDS) -> StepResult:
        return await self._call(lambda: self._session.start(statement, timeout=timeout))

    async def start_declaration(
        self, source: str, *, timeout: float = DEFAULT_CHECK_SECONDS
    ) -> StepResult:
        return await self._call(lambda: self._session.start_declaration(source, timeout=timeout))

    async def run_tactic(
        self, state: ProofState | int, text: str, timeout: float = DEFAULT_STEP_SECONDS
    ) -> StepResult:
        return await self._call(lambda: self._session.run_tactic(state, text, timeout))

    async def focus(self, state: ProofState | int, goals: Sequence[int]) -> StepResult:
        return await self._call(lambda: self._session.focus(state, goals))

    async def check(
        self,
        source: str,
        *,
        sorries: bool = False,
        until: str = "",
        timeout: float = DEFAULT_CHECK_SECONDS,
    ) -> CheckResult | Timeout | SessionLost:
        return await self._call(
            lambda: self._session.check(source, sorries=sorries, until=until, timeout=timeout)
        )

    async def audit(self, name: str) -> AuditReport | TacticError:
        return await self._call(lambda: self._session.audit(name))

    async def declarations(
        self, prefix: str = "", module: str = "", *, types: bool = True
    ) -> tuple[Declaration, ...]:
        return await self._call(
            lambda: tuple(self._session.declarations(prefix, module, types=types))
        )

    async def free(self, states: Sequence[ProofState | int]) -> None:
        await self._call(lambda: self._session.free(states))

    async def reading(self, work: Callable[[Parser], T]) -> T:
        """Call `work` with the session's parser and return its result; see `inputs`."""
        session = self._session
        if not isinstance(session, Parser):
            raise LeanError("this Lean does not parse text on request; use --lean wasm")
        return await self._call(lambda: work(session))

    async def close(self) -> None:
        await asyncio.to_thread(self._session.close)

    async def run(self, work: Callable[[LeanSession], T], stop: threading.Event) -> T:
        """Run blocking work of many steps on the session, and return its result.

        When the awaiting task is cancelled, `stop` is set and the running step is interrupted. The
        work has to end soon after that.
        """
        return await self._call(lambda: work(self._session), stop)

    async def _call(self, work: Callable[[], T], stop: threading.Event | None = None) -> T:
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._executor, work)
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
