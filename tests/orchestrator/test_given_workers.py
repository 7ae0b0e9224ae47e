"""Workers and settings that a caller gives to the scheduler, in the forms that the notes show."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.orchestrator.fakes import FakeWorker, accept
from treewright.kernel.errors import UsageError
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Goal, Result, Scheduler, StrategyType
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.workers.lean_access import LeanAccess

GOAL = Goal(id="g", text="∀ n : Nat, n + 0 = n")


async def run_micro(goal: Goal, timeout: float) -> Result:
    """As in the notes: a list of tactics, no time, the strategy named or left out."""
    await asyncio.sleep(0)
    return Result(success=True, strategy=StrategyType.MICRO, tactics=["simp"])  # type: ignore[arg-type]


async def run_broken(goal: Goal, timeout: float) -> Any:
    return True


async def run_alone(goal: Goal) -> Result:
    return Result(False)


def run_sync(goal: Goal, timeout: float) -> Result:
    return Result(False)


async def solve(goal: Goal, timeout: float) -> Result:
    return Result(False)


class Plain:
    """Has `strategy` and `run` only."""

    strategy = "plain"

    async def run(self, goal: Goal, timeout: float) -> Result:
        return Result(True, tactics=("simp",))


def run(ledger: Path, **given: Any) -> tuple[Result, list[tuple[str, str]]]:
    async def main() -> tuple[Result, list[tuple[str, str]]]:
        with Ledger(ledger) as opened:
            idle = Throttle(1.0, read_load=lambda: 0.0)
            async with Scheduler(ledger=opened, throttle=idle, **given) as scheduler:
                result = await scheduler.run_goal(GOAL)
            rows = opened.query("SELECT strategy, status FROM attempts")
            return result, [tuple(row) for row in rows]

    return asyncio.run(main())


@pytest.mark.xdist_group("orchestrator-lean")
def test_a_function_is_a_worker_and_its_claim_is_replayed(
    tmp_path: Path, lean_access: LeanAccess
) -> None:
    result, rows = run(tmp_path / "ledger.db", workers=[run_micro], lean=lean_access)
    assert (result.success, result.strategy, tuple(result.tactics)) == (True, "micro", ("simp",))
    assert rows == [("micro", "proved")]


def test_an_object_with_strategy_and_run_is_a_worker(tmp_path: Path) -> None:
    result, rows = run(tmp_path / "ledger.db", workers=[Plain()], verify=accept)
    assert (result.success, result.strategy) == (True, "plain")
    assert rows == [("plain", "proved")]


def test_a_worker_that_returns_no_result_has_failed_and_is_named(tmp_path: Path) -> None:
    result, rows = run(tmp_path / "ledger.db", workers=[run_broken], verify=accept)
    assert not result.success
    assert "returned bool instead of a Result" in str(result.error)
    assert rows == [("broken", "error")]


def test_a_failure_without_an_error_is_no_proof(tmp_path: Path) -> None:
    async def run_shy(goal: Goal, timeout: float) -> Result:
        return Result(success=False)

    result, rows = run(tmp_path / "ledger.db", workers=[run_shy], verify=accept)
    assert (result.error, rows) == ("shy: no proof", [("shy", "failed")])


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        ([run_sync], "run_sync must be an `async def`"),
        ([solve], "the function solve is no worker: give `async def run_<strategy>"),
        ([run_alone], "run_alone must take a goal and a timeout"),
        ([Plain], "Plain is a class, not a worker: give an instance of it"),
        ([3], "an object of type int is no worker"),
        (run_micro, "workers takes a list of workers"),
        ([run_micro, FakeWorker(StrategyType.MICRO)], "two workers have the strategy 'micro'"),
        ([FakeWorker(StrategyType.CACHE)], "cannot be 'cache'"),
    ],
)
def test_anything_else_is_an_error_of_one_line(tmp_path: Path, workers: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Scheduler(workers=workers, verify=accept)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir()), "nothing was made"


def test_single_settings_are_arguments(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger.db") as ledger:
        base = OrchestratorConfig(max_light=5)
        scheduler = Scheduler(base, ledger=ledger, workers=[Plain()], max_heavy=1, cpu_target=0.9)
        assert scheduler.config == OrchestratorConfig(max_light=5, max_heavy=1, cpu_target=0.9)
        asyncio.run(scheduler.close())
        for settings, message in (
            ({"max_heavy": 0}, "max_heavy must be at least 1, not 0"),
            ({"max_light": "two"}, "max_light"),
            ({"heavies": 2}, "there is no setting 'heavies'; the settings are"),
        ):
            with pytest.raises(UsageError) as caught:
                Scheduler(ledger=ledger, workers=[Plain()], **settings)
            assert message in str(caught.value)
            assert "\n" not in str(caught.value)


def test_the_throttle_is_awaited_as_in_the_notes(tmp_path: Path) -> None:
    async def main() -> None:
        with Ledger(tmp_path / "ledger.db") as ledger:
            busy = Throttle(0.5, read_load=lambda: 0.51)
            async with Scheduler(ledger=ledger, workers=[Plain()], throttle=busy) as scheduler:
                assert 0 < await scheduler.throttle() <= 1.0
                assert scheduler.cpu_ema == 0.51

    asyncio.run(main())
