"""Strategies of other packages: one file and one registration, known to every command."""

from __future__ import annotations

import asyncio
import importlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.here import Program
from treewright.cli.portfolio import bank as bank_command
from treewright.dashboard import orchestrator_view
from treewright.dashboard.roots import Roots
from treewright.kernel.errors import UsageError
from treewright.orchestrator import checkup, strategies
from treewright.orchestrator.config import OrchestratorConfig, parse_timeouts
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.scheduler import Goal, Result, Scheduler
from treewright.orchestrator.workers.attempt import (
    AttemptRequest,
    run_remote_attempt,
)
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.worker import Availability

pytestmark = pytest.mark.xdist_group("orchestrator-lean")

ROOT = Path(__file__).resolve().parents[2]
SECTION = (
    (ROOT / "docs" / "orchestrator.md").read_text("utf-8").split("## A strategy of your own")[1]
)
PLUG_IN = SECTION.split("```python\n")[1].split("```")[0]
"""The one of the documentation."""
BROKEN = """
def _raise(tools):
    raise RuntimeError("no luck")


sad = Strategy("cannot be made", 1.0, _raise)
nothing = 7
"""


@pytest.fixture
def install(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Callable[[], None]]]:
    """Installs a package as pip would leave it, with these entry points; gives what removes it."""
    place = tmp_path_factory.mktemp("site")

    def install(entries: str) -> Callable[[], None]:
        (place / "their_strategy.py").write_text(PLUG_IN + BROKEN)
        info = place / "their_strategy-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-strategy\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[treewright.strategies]\n{entries}\n")
        monkeypatch.syspath_prepend(place)
        strategies.STRATEGIES.refresh()

        def remove() -> None:
            (info / "entry_points.txt").unlink()
            importlib.invalidate_caches()
            strategies.STRATEGIES.refresh()

        return remove

    yield install
    strategies.STRATEGIES.refresh()


@pytest.mark.usefixtures("shared_lean")
def test_a_plug_in_closes_goals_of_a_bank_and_of_a_project(
    install: Callable[[str], Callable[[], None]], tmp_path: Path, treewright_here: Program
) -> None:
    remove = install("reflexivity = their_strategy:strategy")
    lines = ['{"id": "a", "text": "1 + 1 = 2"}', '{"id": "b", "text": "1 = 2"}']
    (tmp_path / "bank.jsonl").write_text("\n".join(lines))
    call = ["--strategy", "reflexivity", "--cpu-target", "1000"]
    done = treewright_here("bank", "bank.jsonl", *call, "--timeout", "600")
    assert done.returncode == 0, done.stderr
    assert "1 of 2 goals proved, 2 processed" in done.stdout
    (path,) = (tmp_path / "bench" / "results").glob("bank-*.json")
    results = json.loads(path.read_text())
    assert results["solved"] == ["a"]
    assert results["strategies"]["reflexivity"] == {"used": 2, "succeeded": 1, "cancelled": 0}
    assert results["config"]["timeouts"] == {"reflexivity": 5.0}

    (tmp_path / "A.lean").write_text("theorem two : 1 + 1 = 2 := by sorry\n")
    done = treewright_here("bg", "A.lean", "--once", "--json", *call)
    assert done.returncode == 0, done.stderr
    (proved,) = json.loads(done.stdout)["proved"]
    assert (proved["declaration"], proved["strategy"]) == ("two", "reflexivity")

    shown = treewright_here("bank", "--help")
    assert "dojo, reflexivity." in " ".join(shown.stdout.split())
    (check,) = [c for c in checkup.checks(None) if c.name == "reflexivity"]
    assert (check.status, check.detail) == ("ok", "needs nothing")

    for installed in (True, False):  # a removed strategy is shown, but cannot be chosen
        if not installed:
            remove()
        stats = json.loads(treewright_here("ledger", "stats", "--json").stdout)
        assert stats["strategies"]["reflexivity"]["attempts"] == 3
        (found,) = Roots([tmp_path]).scan()
        overview = orchestrator_view.overview(found)
        assert overview["stats"]["strategies"]["reflexivity"]["ucb"] > 0
        assert {point["strategy"] for point in overview["series"]} == {"reflexivity"}
    done = treewright_here("bank", "bank.jsonl", *call)
    assert done.returncode == 2
    assert "there is no strategy 'reflexivity'; there are micro, search" in done.stderr


def test_what_cannot_be_used_is_left_out_and_said(
    install: Callable[[str], None], tmp_path: Path, lean_access: LeanAccess
) -> None:
    names = ["gone", "odd", "other", "sad"]
    values = ["gone:strategy", "their_strategy:nothing", "their_strategy:strategy"]
    values.append("their_strategy:sad")
    install("\n".join(f"{name} = {value}" for name, value in zip(names, values, strict=True)))
    with Ledger(tmp_path / "ledger.db") as ledger:
        config = OrchestratorConfig(strategies=tuple(names))
        scheduler = Scheduler(config, ledger=ledger, lean=lean_access)
        asyncio.run(scheduler.close())
        assert not scheduler.workers
        assert scheduler.excluded == {
            "gone": "the strategy 'gone' cannot be used: gone:strategy: "
            "ModuleNotFoundError: No module named 'gone'",
            "odd": "the strategy 'odd' cannot be used: their_strategy:nothing: it is no Strategy",
            "other": "its worker calls itself 'reflexivity'",
            "sad": "its worker cannot be made: RuntimeError: no luck",
        }
        with pytest.raises(UsageError, match="there is no strategy 'magic'"):
            Scheduler(OrchestratorConfig(strategies=("magic",)), ledger=ledger, lean=lean_access)
    assert parse_timeouts(("sad=3",)) == {"sad": 3.0}
    assert {c.status for c in checkup.checks(None) if c.name in names} == {"absent"}


@pytest.mark.parametrize("name", ["micro", "cache"])
def test_a_plug_in_cannot_take_our_names(install: Callable[[str], None], name: str) -> None:
    install(f"{name} = their_strategy:strategy")
    with pytest.raises(UsageError, match=f"their_strategy:strategy calls its strategy '{name}'"):
        bank_command.main(["--strategy", "search"], standalone_mode=False)


def test_a_worker_process_without_the_plug_in_did_not_try() -> None:
    request = AttemptRequest(Goal(id="a", text="True"), "reflexivity", 1.0)
    tried = run_remote_attempt(request)
    assert tried.result.metadata == {"kind": "unavailable"}
    assert tried.result.error is not None
    assert "no strategy 'reflexivity' is installed" in tried.result.error


def test_a_worker_given_by_hand_needs_no_registration(tmp_path: Path) -> None:
    class Mine:
        strategy = "mine"

        def probe(self) -> Availability:
            return Availability(True, "")

        async def run(self, goal: Goal, timeout: float) -> Result:
            assert timeout == strategies.DEFAULT_SECONDS
            return Result(False, error="no", time_seconds=time.monotonic())

    async def main(ledger: Ledger) -> None:
        async with Scheduler(
            OrchestratorConfig(cpu_target=1000.0), ledger=ledger, workers=[Mine()]
        ) as scheduler:
            result = await scheduler.run_goal(Goal(id="a", text="True"))
            assert (result.strategy, result.error) == ("mine", "mine: no")
            assert scheduler.trials == {"mine": 1}

    with Ledger(tmp_path / "ledger.db") as ledger:
        asyncio.run(main(ledger))
