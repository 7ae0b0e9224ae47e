"""One way to count, for everybody; and stubs, which count nowhere but among themselves."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.orchestrator.fakes import FakeWorker, accept
from tests.orchestrator.test_ledger import attempt
from treewright.cli.main import cli
from treewright.dashboard import orchestrator_view
from treewright.dashboard.roots import Roots
from treewright.orchestrator import http_documents as api
from treewright.orchestrator.config import from_profile
from treewright.orchestrator.ledger import attempts as ledger_stats
from treewright.orchestrator.ledger.attempts import STUB_TOOLCHAIN
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Goal, Scheduler, StrategyType
from treewright.orchestrator.scheduling.throttle import Throttle

MICRO, SEARCH = StrategyType.MICRO, StrategyType.SEARCH
GOAL = Goal(id="g", text="1 = 2")
ENDS = ("proved", "failed", "timeout", "rejected", "error", "cancelled", "unavailable", "cancelled")


def test_everybody_counts_alike(tmp_path: Path) -> None:
    path = tmp_path / ".treewright" / "ledger.db"
    with Ledger(path) as ledger:
        ledger.open_run("run", "bank", "b", "{}")
        ledger.record(
            attempt(str(i), status, time_seconds=float(i + 1), cpu_seconds=2.0**i)
            for i, status in enumerate(ENDS)
        )
        collected = ledger_stats.collect_statistics(ledger)
        arm = ledger.arms()["", MICRO]
    expected = {
        "attempts": 8,
        "trials": 4,
        "successes": 1,
        "cancelled": 2,
        "success_rate": 0.25,
        "avg_time": 2.5,
        "wasted_cpu_seconds": 32.0 + 128.0,
    }
    (found,) = Roots([tmp_path]).scan()
    everywhere = [
        collected["strategies"]["micro"],
        api.stats(path)["strategies"]["micro"],
        orchestrator_view.overview(found)["stats"]["strategies"]["micro"],
    ]
    for sums in everywhere:
        assert {name: sums[name] for name in expected} == expected
    assert (arm.trials, arm.successes) == (expected["trials"], expected["successes"])
    assert collected["wasted_cpu_seconds"] == expected["wasted_cpu_seconds"]
    last = orchestrator_view.overview(found)["series"][-1]
    assert (last["rate"], last["wasted"]) == (0.25, expected["wasted_cpu_seconds"])


async def _run_stubs(**more) -> None:
    idle = Throttle(1.0, read_load=lambda: 0.0)
    async with Scheduler(from_profile(0), throttle=idle, **more) as scheduler:
        result = await scheduler.run_goal(GOAL)
    assert not result.success


def test_stubs_have_a_ledger_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(_run_stubs())
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("ORCH_PROFILE", "0")
    done = CliRunner().invoke(cli, ["bg", "empty", "--once"])
    assert done.exit_code == 0, done.output
    for directory in (tmp_path, tmp_path / "empty"):
        names = {path.name for path in (directory / ".treewright").glob("*.db")}
        assert names == {"stubs-ledger.db"}


def test_what_stubs_wrote_into_a_real_ledger_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        asyncio.run(_run_stubs(ledger=ledger))
        assert ledger.arms() == {}
        assert not ledger.check_duplicate(GOAL, MICRO)
        assert ledger.frontier() == []
        assert ledger_stats.collect_statistics(ledger)["strategies"] == {}
        assert ledger.query("SELECT 1 FROM attempts WHERE toolchain = ?", [STUB_TOOLCHAIN])

        async def really() -> bool:
            worker = FakeWorker(MICRO, lambda _: True)
            idle = Throttle(1.0, read_load=lambda: 0.0)
            async with Scheduler(
                ledger=ledger, workers=[worker], verify=accept, throttle=idle
            ) as scheduler:
                return (await scheduler.run_goal(GOAL)).success

        assert asyncio.run(really())
    assert api.stats(path)["strategies"].keys() == {"micro"}


def test_a_strategy_of_a_newer_treewright_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ".treewright" / "ledger.db"
    with Ledger(path) as ledger:
        ledger.record([attempt("a")])
        ledger.query("UPDATE attempts SET strategy = 'oracle', run_id = 'r'")
        ledger.query("UPDATE bandit SET strategy = 'oracle'")
        assert set(ledger.arms()) == {("", "oracle")}
        idle = Throttle(1.0, read_load=lambda: 0.0)

        async def go() -> None:
            workers = [FakeWorker(MICRO)]
            async with Scheduler(
                ledger=ledger, workers=workers, throttle=idle, run_id="r"
            ) as scheduler:
                await scheduler.run_goal(msgspec.structs.replace(GOAL, id="other"))

        asyncio.run(go())
    done = CliRunner().invoke(cli, ["ledger", "stats", "--json"])
    assert done.exit_code == 0, done.output
    assert "oracle" in json.loads(done.output)["strategies"]
    (found,) = Roots([tmp_path]).scan()
    assert not orchestrator_view.overview(found)["stats"]["problem"]
