"""The calls and queries that users of the orchestrator know, by their names and columns."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.orchestrator.fakes import FakeWorker, accept
from treewright.orchestrator import config
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Goal, Result, Scheduler, StrategyType
from treewright.orchestrator.scheduling.throttle import Throttle
from treewright.orchestrator.workers.lean_access import LeanAccess


@pytest.mark.xdist_group("orchestrator-lean")
def test_the_scheduler_as_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared_lean: LeanAccess
) -> None:
    """Nothing is configured: the ledger of this directory, every strategy. (The Lean processes
    are those of the other tests, to save starting more.)"""
    monkeypatch.chdir(tmp_path)
    patient = OrchestratorConfig(timeouts={StrategyType.MICRO: 300.0})  # a busy machine
    monkeypatch.setitem(config._PROFILES, config.DEFAULT_PROFILE, patient)
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))  # not to wait for others

    async def main() -> None:
        scheduler = Scheduler()
        assert scheduler.ucb_score(StrategyType.MICRO) > 0
        goal = Goal(id="test", text="test", estimated_difficulty=0.3)
        assert len(scheduler.select_strategies(goal, n=1)) == 1
        result = await scheduler.run_goal(goal)
        assert result is not None
        assert not result.success
        assert result.error

        queue: asyncio.Queue[Goal] = asyncio.Queue()
        queue.put_nowait(Goal(id="easy", text="1 + 1 = 2", estimated_difficulty=0.1))
        results = await scheduler.process_queue(queue)
        assert results["easy"].success
        scheduler.shutdown()
        await scheduler.close()

    asyncio.run(main())
    database = sqlite3.connect(tmp_path / ".treewright" / "ledger.db")
    recent = database.execute("SELECT * FROM attempts ORDER BY timestamp DESC LIMIT 10").fetchall()
    assert len(recent) >= 2
    rates = database.execute(
        "SELECT strategy, COUNT(*) as attempts, SUM(success) as successes, "
        "AVG(time_seconds) as avg_time FROM attempts GROUP BY strategy"
    ).fetchall()
    assert "micro" in {row[0] for row in rates}
    open_goals = database.execute(
        "SELECT DISTINCT goal_hash, goal_text FROM attempts WHERE success = 0 "
        "AND goal_hash NOT IN (SELECT goal_hash FROM attempts WHERE success = 1)"
    ).fetchall()
    assert [text for _, text in open_goals] == ["test"]
    cached = database.execute("SELECT * FROM tactic_cache ORDER BY use_count DESC LIMIT 10")
    assert len(cached.fetchall()) == 1
    database.close()


def test_the_ledger_by_text(tmp_path: Path) -> None:
    goal = Goal(id="g", text="∀ n : Nat, n = n")
    with Ledger(tmp_path / "ledger.db") as ledger:
        assert ledger.hash_goal(goal.text) == ledger.hash_goal(goal)
        assert not ledger.check_duplicate(goal.text, StrategyType.MICRO)
        assert ledger.get_cached_tactics(goal.text) is None
        ledger.update_tactic_cache(
            goal.text, tactics=["simp [*]", "aesop"], success_rate=0.85, avg_time=2.3
        )
        cached = ledger.get_cached_tactics(goal.text)
        assert cached is not None
        assert cached["success_rate"] > 0.7
        assert cached["tactics"] == ["simp [*]", "aesop"]


def test_a_goal_with_a_context_is_found_by_its_text(tmp_path: Path) -> None:
    goal = Goal(id="g", text="n ≠ 0", context=("n : Nat", "h : n > 0"))
    worker = FakeWorker(StrategyType.MICRO, lambda _: True)

    async def main(ledger: Ledger) -> None:
        idle = Throttle(1.0, read_load=lambda: 0.0)
        async with Scheduler(
            ledger=ledger, workers=[worker], verify=accept, throttle=idle
        ) as scheduler:
            assert (await scheduler.run_goal(goal)).success
            assert scheduler.trials == {StrategyType.MICRO: 1}
            assert scheduler.success_rate[StrategyType.MICRO] == pytest.approx(0.55)
            assert scheduler.cpu_ema >= 0

    with Ledger(tmp_path / "ledger.db") as ledger:
        asyncio.run(main(ledger))
        assert ledger.check_duplicate(goal.text, StrategyType.MICRO)
        cached = ledger.get_cached_tactics(goal.text)
        assert cached is not None
        assert cached["tactics"] == ["by_micro"]
        # A goal is asked for by its context too.
        bare = Goal(id="b", text=goal.text)
        assert not ledger.check_duplicate(bare, StrategyType.MICRO)
        assert ledger.get_cached_tactics(bare) is None


def test_a_result_without_a_strategy_is_the_workers(tmp_path: Path) -> None:
    class Brief(FakeWorker):
        async def run(self, goal: Goal, timeout: float) -> Result:
            return Result(success=False, error="timeout")

    async def main(ledger: Ledger) -> Result:
        async with Scheduler(ledger=ledger, workers=[Brief(StrategyType.MICRO)]) as scheduler:
            return await scheduler.try_strategy(Goal(id="g", text="x"), StrategyType.MICRO)

    with Ledger(tmp_path / "ledger.db") as ledger:
        assert asyncio.run(main(ledger)).strategy is StrategyType.MICRO
        (row,) = ledger.query("SELECT strategy, status FROM attempts")
        assert tuple(row) == ("micro", "timeout")


def test_the_default_time_limits() -> None:
    known = {"micro": 8.0, "copilot": 20.0, "reprover": 60.0, "sketch": 6.0}
    assert {name: OrchestratorConfig().timeout(name) for name in known} == known


def test_the_module_as_a_program(tmp_path: Path) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "bank.jsonl").write_text('{"id": "a", "text": "True"}\n')
    done = subprocess.run(
        [sys.executable, "-m", "treewright.orchestrator.main", "bank", "--timeout", "10"],
        cwd=tmp_path,
        env={**os.environ, "ORCH_PROFILE": "0"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (results,) = (tmp_path / "bench" / "results").glob("bank-*.json")
    assert json.loads(results.read_text())["config"]["profile"] == 0
