"""Strategies without Lean, for tests of the machinery around them.

`accept` lets their claims through in place of the replay check; only tests do so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from treewright.lean.verify.verdict import Verdict
from treewright.orchestrator.types import Goal, Result, StrategyType
from treewright.orchestrator.workers.worker import Availability


class FakeWorker:
    """Succeeds where `decide(goal)` is true; remembers the goals."""

    def __init__(
        self,
        strategy: StrategyType,
        decide: Callable[[Goal], bool] = lambda _: False,
        *,
        wait: Callable[[], Awaitable[object]] | None = None,
        availability: Availability | None = None,
    ) -> None:
        self._strategy = strategy
        self._decide = decide
        self._wait = wait
        self._availability = availability or Availability(True, "a fake")
        self.asked: list[str] = []
        self.cancelled: list[str] = []

    @property
    def strategy(self) -> StrategyType:
        return self._strategy

    def probe(self) -> Availability:
        return self._availability

    async def run(self, goal: Goal, timeout: float) -> Result:
        self.asked.append(goal.id)
        try:
            if self._wait is not None:
                await self._wait()
        except asyncio.CancelledError:
            self.cancelled.append(goal.id)
            raise
        if self._decide(goal):
            return Result(True, self._strategy, (f"by_{self._strategy}",), 0.01)
        return Result(False, self._strategy, (), 0.01, error="no")


class Raising(FakeWorker):
    async def run(self, goal: Goal, timeout: float) -> Result:
        raise RuntimeError("boom")


async def accept(goal: Goal, tactics: Sequence[str], timeout: float) -> Verdict:
    return Verdict("proved")


async def refuse(goal: Goal, tactics: Sequence[str], timeout: float) -> Verdict:
    return Verdict("axiom", "rests on magic")
