"""`python -m tests.orchestrator.stub_bank BANK LEDGER`: a bank run that needs no Lean.

For tests that kill it: an attempt ends when a byte comes on stdin, and which strategy proves
which goal depends on the goal alone. Called as a function, it does not wait.
"""

from __future__ import annotations

import asyncio
import functools
import os
import sys
from pathlib import Path

from tests.orchestrator.fakes import FakeWorker, accept
from treewright.orchestrator.bank_run import BankResults, run_bank
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.goals.bank import read_bank
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Goal, Scheduler, StrategyType
from treewright.orchestrator.scheduling.throttle import Throttle


def by_micro(goal: Goal) -> bool:
    return int(goal.id) % 3 == 0


def by_search(goal: Goal) -> bool:
    return int(goal.id) % 2 == 0


def solvable(number: int) -> bool:
    return number % 3 == 0 or number % 2 == 0


async def token() -> None:
    loop = asyncio.get_running_loop()
    arrived = loop.create_future()
    loop.add_reader(0, lambda: arrived.done() or arrived.set_result(os.read(0, 1)))
    await arrived


class _Tokens:
    """One byte of stdin for each attempt, in any order; the end of stdin lets none through."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def __call__(self) -> None:
        async with self._lock:
            await token()


def make_scheduler(
    config: OrchestratorConfig, ledger: Ledger, run_id: str, *, waiting: bool
) -> Scheduler:
    wait = _Tokens() if waiting else None
    return Scheduler(
        config,
        ledger=ledger,
        run_id=run_id,
        workers=[
            FakeWorker(StrategyType.MICRO, by_micro, wait=wait),
            FakeWorker(StrategyType.SEARCH, by_search, wait=wait),
        ],
        verify=accept,
        throttle=Throttle(1.0, read_load=lambda: 0.0),
    )


def run(bank: Path, ledger_path: Path, *, waiting: bool = False) -> BankResults:
    config = OrchestratorConfig(speculation=1, reuse=False)
    with Ledger(ledger_path) as ledger:
        return asyncio.run(
            run_bank(
                read_bank(bank),
                config,
                ledger,
                timeout=600,
                make_scheduler=functools.partial(make_scheduler, waiting=waiting),
            )
        ).results


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), waiting=True)
