"""The Lean processes of a scheduler: a bounded number of sessions, and the replay check.

However many goals are in work, no more than `sessions` Lean processes try tactics; one more,
started when first needed, runs the replay check, which alone decides what is proved.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from treewright.lean.async_session import AsyncLeanSession
from treewright.lean.pool import LeanPool
from treewright.lean.replay import Replayer, Verdict
from treewright.lean.session import LeanError
from treewright.lean.wasm.install import ensure_installed
from treewright.lean.wasm.session import WasmSession
from treewright.orchestrator.goals import statements
from treewright.orchestrator.types import Goal
from treewright.orchestrator.workers.meter import current_meter, metered, waiting

TOOLCHAIN = "wasm-4.28.0"
"""Of the bundled Lean; part of what makes two attempts the same."""


class LeanAccess:
    """Nothing is started before it is needed."""

    def __init__(self, sessions: int = 2) -> None:
        if sessions < 1:
            raise ValueError("at least one Lean session is needed")
        self._sessions = sessions
        self._pool: LeanPool | None = None
        self._replayer: Replayer | None = None
        self._closed = False
        self._well_formed: set[tuple[object, ...]] = set()
        self._checks = ThreadPoolExecutor(max_workers=1, thread_name_prefix="replay")

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[AsyncLeanSession]:
        """Lends a session; waits while all are lent.

        Its CPU time, and the waiting, go to the current meter.
        """
        async with contextlib.AsyncExitStack() as stack:
            with waiting():
                pool = await self._ready_pool()
                session = await stack.enter_async_context(pool.async_session())
            with metered(session.pid):
                yield session

    async def _ready_pool(self) -> LeanPool:
        if self._pool is None:
            home = await asyncio.to_thread(ensure_installed)
            if self._pool is None:
                self._pool = LeanPool(lambda: WasmSession(home), self._sessions, spares=0)
        return self._pool

    async def check_goal(self, goal: Goal, session: AsyncLeanSession | None = None) -> None:
        """Refuses, by UsageError, a goal whose pieces are not what they are called.

        Asked once a goal, of the session that is at hand or of one that is borrowed for it.
        """
        pieces = (goal.text, goal.context, goal.imports, goal.preamble)
        if goal.place is not None or pieces in self._well_formed:
            return
        if session is None:
            async with self.session() as session:
                await session.reading(lambda parser: statements.check(parser, goal))
        else:
            await session.reading(lambda parser: statements.check(parser, goal))
        self._well_formed.add(pieces)

    async def verify(self, goal: Goal, tactics: Sequence[str], timeout: float) -> Verdict:
        """The replay check of what a worker claims. Cancelling it does not interrupt it."""
        await self.check_goal(goal)
        if goal.place is not None:
            original, candidate = statements.filled(goal.place, tactics)
            return await self.replay(original, candidate, [goal.place.declaration], timeout)
        return await self._check(
            lambda replayer: replayer.theorem(
                statements.closed_statement(goal),
                "\n".join(tactics),
                imports=goal.imports,
                preamble=goal.preamble,
                timeout=timeout,
            )
        )

    async def replay(
        self, original: str, candidate: str, targets: Sequence[str], timeout: float
    ) -> Verdict:
        """The replay check of a whole text."""
        return await self._check(
            lambda replayer: replayer.text(original, candidate, targets, timeout=timeout)
        )

    async def _check(self, work: Callable[[Replayer], Verdict]) -> Verdict:
        loop = asyncio.get_running_loop()
        asked = time.monotonic()

        def check() -> tuple[float, Verdict]:
            return time.monotonic() - asked, self._with_replayer(work)

        waited, verdict = await loop.run_in_executor(self._checks, check)
        if (meter := current_meter.get()) is not None:
            meter.add_wait(waited)
        return verdict

    def _with_replayer(self, work: Callable[[Replayer], Verdict]) -> Verdict:
        if self._closed:
            raise LeanError("the Lean processes are being ended")
        if self._replayer is None:
            self._replayer = Replayer(ensure_installed())
        return work(self._replayer)

    async def close(self) -> None:
        """Ends every Lean process."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._closed = True
        if self._replayer is not None:
            self._replayer.close()  # a check that runs ends as lost
        self._checks.shutdown(cancel_futures=True)
        if self._pool is not None:
            self._pool.close()
            self._pool = None
