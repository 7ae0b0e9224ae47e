"""The API's documents, from real ledgers of every state; nothing is ever written."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest

from treewright.kernel.errors import StorageError
from treewright.orchestrator import http_documents as api
from treewright.orchestrator.ledger.attempts import Attempt
from treewright.orchestrator.ledger.ledger import Ledger
from treewright.orchestrator.ledger.schema import open_for_reading
from treewright.orchestrator.marketplace.market import Marketplace
from treewright.orchestrator.types import StrategyType


def attempt(number: int, goal: str, strategy: StrategyType, status: str) -> Attempt:
    return Attempt(
        key=str(number),
        run_id="r",
        goal_id=goal,
        goal_hash=Ledger.hash_goal(goal),
        goal_text=goal,
        goal_class="",
        strategy=strategy,
        status=status,  # type: ignore[arg-type]
        time_seconds=2.0,
        cpu_seconds=1.0,
        budget=8.0,
        toolchain="4.28.0",
        imports=("Init",),
        tactics=("simp",) if status == "proved" else (),
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    with Ledger(path) as made:
        made.open_run("r", "bank", "bank.jsonl", "{}")
        made.record(
            [
                attempt(1, "1 = 1", StrategyType.MICRO, "failed"),
                attempt(2, "1 = 1", StrategyType.SEARCH, "proved"),
                attempt(3, "2 = 2", StrategyType.MICRO, "proved"),
                attempt(4, "3 = 4", StrategyType.SEARCH, "cancelled"),
            ]
        )
        made.update_tactic_cache("1 = 1", tactics=["simp"], success_rate=0.9, avg_time=1.5)
        made.note_cache_use("1 = 1", success=True, seconds=1.0)
    return path


def files(path: Path) -> dict[str, bytes]:
    """The files on disk, without SQLite's shared memory file."""
    return {p.name: p.read_bytes() for p in path.parent.iterdir() if not p.name.endswith("-shm")}


def test_statistics(ledger: Path) -> None:
    found = api.stats(ledger)
    assert (found["attempts"], found["successes"]) == (4, 2)
    assert found["goals"] == {"tried": 3, "solved": 2}
    search = found["strategies"]["search"]
    bandit = search.pop("bandit")
    assert search == {
        "attempts": 2,
        "successes": 1,
        "trials": 1,
        "cancelled": 1,
        "success_rate": 1.0,
        "avg_time": 2.0,
        "time_seconds": 4.0,
        "cpu_seconds": 2.0,
        "wasted_cpu_seconds": 1.0,
    }
    assert bandit["trials"] == 1
    assert found["strategies"]["micro"]["success_rate"] == 0.5
    assert [a["goal_text"] for a in found["recent"]] == ["3 = 4", "2 = 2", "1 = 1", "1 = 1"]
    assert found["recent"][1]["tactics"] == ["simp"]
    assert (found["tactic_cache"]["entries"], found["tactic_cache"]["uses"]) == (2, 1)
    assert found["tactic_cache"]["top"][0]["tactics"] == ["simp"]
    assert found["runs"][0]["run_id"] == "r"
    json.dumps(found)


def test_the_marketplace(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"

    async def fill(marketplace: Marketplace) -> None:
        for goal, priority in (("1 = 1", 0.1), ("2 = 2", 0.9), ("3 = 3", 0.5)):
            await marketplace.request_lemma(goal, priority=priority, suggested_name="it")
        urgent, middle, _ = await marketplace.get_open_tickets()
        await marketplace.claim_ticket(urgent.ticket_id, "a", lease_seconds=10)
        await marketplace.claim_ticket(middle.ticket_id, "b", lease_seconds=1000)

    with Marketplace(path, clock=lambda: 100.0) as marketplace:
        asyncio.run(fill(marketplace))
    found = api.marketplace(path, now=105.0)
    assert found["total"] == 3
    assert found["by_status"] == {"open": 1, "claimed": 2, "completed": 0}
    assert [ticket["goal"] for ticket in found["tickets"]] == ["2 = 2", "3 = 3", "1 = 1"]
    later = api.marketplace(path, now=110.0)
    assert later["by_status"]["open"] == 2, "an expired claim is open"
    assert later["tickets"][0]["status"] == "open"
    json.dumps(found)


def test_a_sound_ledger_is_healthy(ledger: Path) -> None:
    found = api.health(ledger)
    assert found["status"] == "ok"
    assert found["ledger_version"] == 1
    json.dumps(found)


def test_no_ledger_is_no_error_and_none_is_made(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    assert api.stats(path)["attempts"] == 0
    assert api.marketplace(path)["total"] == 0
    assert api.health(path)["status"] == "absent"
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_of_another_version_is_refused(ledger: Path) -> None:
    with sqlite3.connect(ledger) as db:
        db.execute("PRAGMA user_version = 2")
    db.close()
    said = "ledger of version 2, this treewright reads version 1; use the treewright that wrote it"
    for document in (api.stats, api.marketplace):
        with pytest.raises(StorageError, match=said):
            document(ledger)
    found = api.health(ledger)
    assert (found["status"], found["ledger_version"]) == ("error", None)
    assert said in found["detail"]


def test_a_file_that_is_still_empty_is_no_ledger_yet(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.touch()
    assert api.stats(path)["attempts"] == 0
    assert api.marketplace(path)["total"] == 0
    assert api.health(path)["status"] == "absent"


def test_reading_beside_a_writer_changes_nothing(ledger: Path) -> None:
    with Ledger(ledger) as writer:
        writer.record([attempt(5, "5 = 5", StrategyType.MICRO, "proved")])
        before = files(ledger)
        assert api.stats(ledger)["attempts"] == 5
        assert api.health(ledger)["status"] == "ok"
        assert files(ledger) == before


def test_the_connection_cannot_write(ledger: Path) -> None:
    with pytest.raises(StorageError, match="readonly"), open_for_reading(ledger) as connection:
        connection.execute("DELETE FROM attempts")
    assert api.stats(ledger)["attempts"] == 4


def test_damage_is_said(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(b"this is no database, however long it is. " * 200)
    assert api.health(path)["status"] == "error"
    assert "damaged" in api.health(path)["detail"]
    with pytest.raises(StorageError, match="damaged"):
        api.stats(path)
