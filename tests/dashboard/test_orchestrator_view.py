"""The ledger on pages: real, missing, of another version, damaged, and during a write."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from tests.dashboard.serving import Server, served
from treewright.dashboard import orchestrator_view
from treewright.dashboard.roots import Roots, RunRef
from treewright.orchestrator.ledger.attempts import Attempt
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.marketplace.tickets import NewTicket, TicketTable
from treewright.orchestrator.types import StrategyType

GOALS = 12
CONFIG = '{"max_light": 8, "max_heavy": 2, "cpu_target": 0.5}'


def attempt(number: int, strategy: StrategyType, status, cpu: float = 0.5) -> Attempt:
    goal = f"{number} + 0 = {number}"
    return Attempt(
        key=f"{number}/{strategy}", run_id="bank-1", goal_id=f"g{number}",
        goal_hash=Ledger.hash_goal(goal), goal_text=goal, goal_class="nat", strategy=strategy,
        status=status, time_seconds=0.25, cpu_seconds=cpu, budget=8.0, toolchain="t",
        imports=("Init",), tactics=("simp",) if status == "proved" else (),
        error=None if status == "proved" else "no luck",
    )  # fmt: skip


def fill(path: Path) -> None:
    """Fill a bank of goals: micro proves two of three, search is cancelled on those."""
    with Ledger(path) as ledger:
        ledger.open_run("bank-1", "bank", "a bank", CONFIG)
        for number in range(GOALS):
            won = number % 3 != 0
            ledger.record([attempt(number, StrategyType.MICRO, "proved" if won else "failed")])
            ledger.record(
                [attempt(number, StrategyType.SEARCH, "cancelled" if won else "timeout", 2)]
            )
        ledger.update_tactic_cache("1 + 0 = 1", tactics=["simp"], success_rate=1.0, avg_time=0.1)


@pytest.fixture
def ledger(tmp_path: Path) -> RunRef:
    path = tmp_path / ".treewright" / "ledger.db"
    path.parent.mkdir()
    fill(path)
    (found,) = Roots([tmp_path]).scan()
    return found


def test_the_page_shows_totals_and_strategies(ledger: RunRef) -> None:
    found = orchestrator_view.overview(ledger)
    stats = found["stats"]
    assert stats["goals"] == {"tried": 12, "solved": 8}
    assert (stats["attempts"], stats["successes"]) == (24, 8)
    search = stats["strategies"]["search"]
    assert search["wasted_cpu_seconds"] == 16.0, "eight cancelled attempts of two seconds"
    assert search["success_rate"] == 0.0
    micro = stats["strategies"]["micro"]
    assert micro["success_rate"] == pytest.approx(8 / 12)
    assert micro["ucb"] > 0
    assert micro["trials"] == 12
    assert found["recent"][0]["goal_text"] == "11 + 0 = 11"
    assert found["runs"][0]["config"]["max_heavy"] == 2
    last = {p["strategy"]: p for p in found["series"] if p["attempts"] == 24}
    assert last["search"]["wasted"] == 16.0
    assert last["micro"]["rate"] == pytest.approx(8 / 12)
    assert last["micro"]["ucb"] == pytest.approx(micro["ucb"]), "run again, the bandit agrees"


def test_a_strategy_that_appears_between_two_reads_is_shown(
    ledger: RunRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The totals precede its first attempt, and the rows follow it."""
    before = orchestrator_view.stats(ledger)
    with Ledger(ledger.path) as writing:
        writing.record([attempt(GOALS, StrategyType.SKETCH, "failed")])
    monkeypatch.setattr(orchestrator_view, "stats", lambda _: before)
    found = orchestrator_view.overview(ledger)
    assert set(found["stats"]["strategies"]) == {"micro", "search"}
    assert found["stats"]["strategies"]["search"]["wasted_cpu_seconds"] == 16.0


def test_the_ledger_is_on_the_home_page(ledger: RunRef) -> None:
    line = orchestrator_view.summary(ledger)
    assert line["progress"] == {"done": 8, "of": 12}
    assert line["liveness"]["state"] == "ledger"


def test_tickets_are_listed_by_status(ledger: RunRef) -> None:
    tickets = TicketTable(ledger.path)
    try:
        first = tickets.request(NewTicket(goal="p ∧ q → q ∧ p"), time.time())
    finally:
        tickets.close()
    found = orchestrator_view.marketplace(ledger)
    assert found["by_status"] == {"open": 1, "claimed": 0, "completed": 0}
    assert [ticket["ticket_id"] for ticket in found["tickets"]] == [first]


def test_a_missing_ledger_gives_empty_valid_documents(server: Server) -> None:
    stats = server.get("/api/stats").json()
    assert (stats["attempts"], stats["strategies"], stats["recent"]) == (0, {}, [])
    market = server.get("/api/marketplace").json()
    assert (market["total"], market["by_status"]["open"], market["tickets"]) == (0, 0, [])
    health = server.get("/api/health").json()
    assert (health["status"], health["ledger_version"]) == ("absent", None)
    assert server.get("/api/bank/0/ledger").status_code == 404


def test_a_ledger_of_another_version_is_reported(ledger: RunRef) -> None:
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    found = orchestrator_view.overview(ledger)
    assert "ledger of version 2, this treewright reads version 1" in found["stats"]["problem"]
    assert orchestrator_view.health(ledger)["status"] == "error"


def test_a_damaged_ledger_is_reported(tmp_path: Path) -> None:
    path = tmp_path / ".treewright" / "ledger.db"
    path.parent.mkdir()
    path.write_bytes(b"this is no database, and it is long enough to be looked at" * 40)
    (run,) = Roots([tmp_path]).scan()
    assert orchestrator_view.health(run)["status"] == "error"
    assert orchestrator_view.summary(run)["liveness"]["state"] == "damaged"
    assert orchestrator_view.overview(run)["stats"]["attempts"] == 0


def test_reading_a_ledger_writes_nothing_and_needs_no_lock(ledger: RunRef) -> None:
    before = ledger.path.read_bytes()
    writer = sqlite3.connect(ledger.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        assert orchestrator_view.stats(ledger)["attempts"] == 24, "while somebody writes"
    finally:
        writer.execute("ROLLBACK")
        writer.close()
    assert ledger.path.read_bytes() == before


def test_the_documented_addresses_over_http(ledger: RunRef) -> None:
    with served("--runs", ledger.project) as running:
        assert running.get("/api/stats").json()["goals"]["solved"] == 8
        assert running.get("/api/marketplace").json()["total"] == 0
        assert running.get("/api/health").json()["status"] == "ok"
        assert running.get("/api/bank/0/ledger").json()["run"]["key"] == "bank/0/ledger"
