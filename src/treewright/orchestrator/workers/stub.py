"""Stub strategies for profile 0: the scheduler, the lanes and the ledger without Lean.

They prove nothing and say so; a run of profile 0 is for trying the machinery.
"""

from __future__ import annotations

from treewright.orchestrator.types import Goal, Result
from treewright.orchestrator.workers.base import Availability


class StubWorker:
    def __init__(self, strategy: str) -> None:
        self._strategy = strategy

    @property
    def strategy(self) -> str:
        return self._strategy

    def probe(self) -> Availability:
        return Availability(True, "a stub that never proves anything (profile 0)")

    async def run(self, goal: Goal, timeout: float) -> Result:
        return Result(False, self._strategy, error="stub worker: nothing was tried")
