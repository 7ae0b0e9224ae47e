"""Waiting for a turn is not the strategy's time: not in its limit, and not learned from."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.orchestrator.fakes import FakeWorker, accept
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Goal, Result, Scheduler, StrategyType
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.workers import attempt as attempt_module
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.meter import waiting
from treewright.orchestrator.workers.micro import MicroWorker
from treewright.orchestrator.workers.native import ThreadWorker
from treewright.orchestrator.workers.worker import UNAVAILABLE, Availability, Worker

MICRO, DOJO = StrategyType.MICRO, StrategyType.DOJO
GOAL = Goal(id="g", text="∀ n : Nat, n + 0 = n")
LIMIT = 0.2
HELD = 0.05
CONFIG = OrchestratorConfig(timeouts={MICRO: LIMIT, DOJO: LIMIT})


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


async def attempt(
    ledger: Ledger, worker: Worker, config: OrchestratorConfig = CONFIG, **more
) -> Result:
    idle = Throttle(1.0, read_load=lambda: 0.0)
    async with Scheduler(
        config, ledger=ledger, workers=[worker], throttle=idle, **({"verify": accept} | more)
    ) as scheduler:
        return await scheduler.try_strategy(GOAL, worker.strategy)


def metadata(ledger: Ledger) -> list[tuple[str, dict[str, object]]]:
    found = ledger.query("SELECT status, metadata FROM attempts ORDER BY id")
    return [(row["status"], json.loads(row["metadata"])) for row in found]


class Patient(FakeWorker):
    """Reports a minute of work, but only waits."""

    async def run(self, goal: Goal, timeout: float) -> Result:
        with waiting():
            await asyncio.sleep(3 * LIMIT)
        return Result(True, MICRO, ("rfl",), 60.0)


def test_an_attempt_that_waited_for_longer_than_its_limit_is_not_over(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_module, "GRACE_SECONDS", 0.0)
    monkeypatch.setattr(attempt_module, "_MIN_POLL_SECONDS", 0.01)
    result = asyncio.run(attempt(ledger, Patient(MICRO)))
    assert result.success, result
    ((status, data),) = metadata(ledger)
    assert status == "proved"
    assert float(str(data["waited_seconds"])) >= round(3 * LIMIT, 3), "kept to the millisecond"
    assert ledger.arms()["", MICRO].seconds < 50, "the minute is not learned"


def test_an_attempt_that_waits_for_ever_has_tried_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_module, "MAX_WAIT_SECONDS", 0.05)
    monkeypatch.setattr(attempt_module, "_MIN_POLL_SECONDS", 0.01)
    ended: list[str] = []

    class Endless(FakeWorker):
        async def run(self, goal: Goal, timeout: float) -> Result:
            try:
                with waiting():
                    await asyncio.Event().wait()
            finally:
                ended.append(goal.id)
            raise AssertionError

    result = asyncio.run(attempt(ledger, Endless(MICRO)))
    assert result.metadata["kind"] == UNAVAILABLE
    assert "no Lean session" in str(result.error)
    assert [status for status, _ in metadata(ledger)] == ["unavailable"]
    assert ended == ["g"]
    assert ledger.arms() == {}


def test_an_attempt_that_works_for_longer_than_its_limit_is_over(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_module, "GRACE_SECONDS", 0.0)
    worker = FakeWorker(MICRO, lambda _: True, wait=lambda: asyncio.Event().wait())
    result = asyncio.run(attempt(ledger, worker))
    assert result.error == "timeout"
    assert worker.cancelled == ["g"]
    assert [status for status, _ in metadata(ledger)] == ["timeout"]


class Threaded(ThreadWorker):
    strategy = DOJO

    def probe(self) -> Availability:
        return Availability(True, "")

    def prove(self, goal: Goal, deadline: float) -> tuple[str, ...]:
        return ("rfl",)


def test_a_strategy_that_waits_for_a_thread_has_not_begun(ledger: Ledger) -> None:
    async def main() -> Result:
        threads = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(threads)
        taken, free = threading.Event(), threading.Event()

        def occupy() -> None:
            taken.set()
            free.wait()

        occupied = asyncio.create_task(asyncio.to_thread(occupy))
        while not taken.is_set():
            await asyncio.sleep(0)
        task = asyncio.create_task(attempt(ledger, Threaded()))
        while not threads._work_queue.qsize():
            await asyncio.sleep(0)
        await asyncio.sleep(3 * LIMIT)  # it waits, and so for at least this long
        free.set()
        await occupied
        return await task

    result = asyncio.run(main())
    assert result.success, result
    assert result.metadata["waited_seconds"] >= round(3 * LIMIT, 3)


@pytest.mark.xdist_group("orchestrator-lean")
def test_waiting_for_a_session_is_recorded_as_such(lean_access: LeanAccess, ledger: Ledger) -> None:
    config = OrchestratorConfig(timeouts={MICRO: 300.0})

    async def main() -> Result:
        async with lean_access.session():
            task = asyncio.create_task(
                attempt(ledger, MicroWorker(lean_access), config, lean=lean_access)
            )
            lean = lean_access._lean
            assert lean is not None
            while not lean.stats.waiting:
                await asyncio.sleep(0)
            await asyncio.sleep(HELD)  # it waits, and so for at least this long
        return await task

    result = asyncio.run(main())
    assert result.success, result
    assert result.metadata["waited_seconds"] >= round(HELD, 3)
