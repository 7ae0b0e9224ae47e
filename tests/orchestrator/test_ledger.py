"""The ledger: attempts, statistics, duplicates, the tactic cache, and damaged files."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from treewright.kernel.errors import LockActive, StorageError
from treewright.orchestrator.bandit import Arm
from treewright.orchestrator.ledger.attempts import Attempt
from treewright.orchestrator.ledger.ledger import Ledger, LedgerTacticCache
from treewright.orchestrator.types import Goal, Place, StrategyType
from treewright.proving.records import GoalView
from treewright.proving.tactics.basic_sources import CachedTactics

MICRO = StrategyType.MICRO


def attempt(key: str = "k", status: str = "failed", **changes) -> Attempt:
    base = Attempt(
        key=key,
        run_id="run",
        goal_id="g",
        goal_hash=Ledger.hash_goal("1 = 2"),
        goal_text="1 = 2",
        goal_class="",
        strategy=MICRO,
        status="failed",
        time_seconds=1.0,
        cpu_seconds=0.5,
        budget=8.0,
        toolchain="t",
        imports=("Init",),
    )
    return msgspec.structs.replace(base, status=status, **changes)


@pytest.fixture
def ledger(tmp_path: Path):
    with Ledger(tmp_path / "sub" / "ledger.db") as opened:
        yield opened


def test_an_attempt_is_recorded_once_and_learned_from_once(ledger: Ledger) -> None:
    ledger.record([attempt(goal_class="nat"), attempt(goal_class="nat")])
    ledger.record([attempt(goal_class="nat")])
    assert len(ledger.query("SELECT * FROM attempts")) == 1
    arm = Arm().after(False, 1.0)
    assert ledger.arms() == {("", MICRO): arm, ("nat", MICRO): arm}
    ledger.record([attempt("other", "proved", goal_class="nat", time_seconds=3.0)])
    assert ledger.arms()["", MICRO] == arm.after(True, 3.0)


def test_cancelled_attempts_and_the_cache_teach_nothing(ledger: Ledger) -> None:
    ledger.record([attempt("a", "cancelled"), attempt("b", "unavailable")])
    ledger.record([attempt("c", "proved", strategy=StrategyType.CACHE)])
    assert ledger.arms() == {}


def test_a_duplicate_is_the_same_goal_strategy_toolchain_imports_and_no_more_time(
    ledger: Ledger,
) -> None:
    ledger.record([attempt()])
    same = {"toolchain": "t", "imports": ("Init",), "budget": 8.0}
    assert ledger.check_duplicate(" 1  =  2 ", MICRO, **same)
    assert ledger.check_duplicate("1 = 2", MICRO)
    assert not ledger.check_duplicate("1 = 3", MICRO, **same)
    assert not ledger.check_duplicate("1 = 2", StrategyType.SEARCH, **same)
    for change in ({"toolchain": "u"}, {"imports": ("Std",)}, {"budget": 9.0}):
        assert not ledger.check_duplicate("1 = 2", MICRO, **{**same, **change})
    assert ledger.check_duplicate("1 = 2", MICRO, **{**same, "budget": 7.0})


def test_what_proved_a_goal_is_not_in_vain(ledger: Ledger) -> None:
    ledger.record([attempt(status="proved")])
    assert ledger.check_duplicate("1 = 2", MICRO), "it was tried"
    assert not ledger.check_duplicate("1 = 2", MICRO, budget=8.0)
    assert not ledger.check_duplicate("1 = 2", MICRO, budget=1.0)


def test_a_proof_is_in_the_cache_with_its_attempt(ledger: Ledger) -> None:
    """By one transaction: a kill leaves both or neither."""
    ledger.record([attempt(status="proved", tactics=("intro x", "simp")), attempt("b")])
    cached = ledger.get_cached_tactics("1 = 2")
    assert cached is not None
    assert (cached["tactics"], cached["success_rate"]) == (["intro x", "simp"], 1.0)


def test_a_cancelled_attempt_was_not_a_try(ledger: Ledger) -> None:
    ledger.record([attempt(status="cancelled")])
    assert not ledger.check_duplicate("1 = 2", MICRO)


def test_the_frontier_is_what_was_tried_and_not_proved(ledger: Ledger) -> None:
    ledger.record(
        [
            attempt("a"),
            attempt("b", goal_hash="h2", goal_text="two"),
            attempt("c", "proved", goal_hash="h2", goal_text="two"),
        ]
    )
    assert ledger.frontier() == [(Ledger.hash_goal("1 = 2"), "1 = 2")]


def test_the_surroundings_of_a_goal_are_part_of_what_it_is() -> None:
    goal = Goal(id="a", text="p")
    place = Place("f.lean", "theorem t : p := by sorry", "t", ((20, 25),))
    hashes = {
        Ledger.hash_goal(goal),
        Ledger.hash_goal(msgspec.structs.replace(goal, preamble="def p := True")),
        Ledger.hash_goal(msgspec.structs.replace(goal, context=("h : q",))),
        Ledger.hash_goal(msgspec.structs.replace(goal, place=place)),
    }
    assert len(hashes) == 4
    assert Ledger.hash_goal(msgspec.structs.replace(goal, id="b")) in hashes


def test_reopening_finds_everything(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.record([attempt(tactics=("simp", "ring ∘ x"), metadata={"a": [1]})])
        ledger.update_tactic_cache("x", tactics=["simp"], success_rate=0.9, avg_time=1.0)
        ledger.note_cache_use("x", success=False, seconds=2.0)
    with Ledger(path) as ledger:
        (row,) = ledger.query("SELECT * FROM attempts")
        assert row["tactics"] == '["simp", "ring ∘ x"]'
        assert row["metadata"] == '{"a":[1]}'
        cached = ledger.get_cached_tactics("x")
        assert cached is not None
        assert cached["use_count"] == 1
        assert cached["success_rate"] == pytest.approx(0.81)
        assert ledger.query("PRAGMA journal_mode")[0][0] == "wal"
        assert ledger.query("PRAGMA synchronous")[0][0] == 2


def test_a_transaction_that_sqlite_ended_itself_is_said_as_it_is(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As SQLite does when the disk is full: the error is that one, not of a second rollback."""

    def full(_: Attempt) -> None:
        ledger._connection.execute("ROLLBACK")
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr(ledger, "_learn", full)
    with pytest.raises(StorageError, match="disk full"):
        ledger.record([attempt()])
    monkeypatch.undo()
    ledger.record([attempt()])
    assert len(ledger.query("SELECT * FROM attempts")) == 1


def test_a_ledger_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        ledger.query("PRAGMA user_version = 999")
    with pytest.raises(
        StorageError, match="ledger of version 999, this treewright reads version 1"
    ):
        Ledger(path)


@pytest.mark.parametrize("content", [b"this is no database" * 100, b"\0" * 5000])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"damaged|not a treewright ledger"):
        Ledger(path)
    assert path.read_bytes() == content


def test_a_damaged_ledger_says_so_and_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path) as ledger:
        for i in range(200):
            ledger.record([attempt(f"k{i}", goal_text="x" * 500)])
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(StorageError, match="damaged"), Ledger(path) as ledger:
        ledger.query("SELECT * FROM attempts")
    assert path.read_bytes() == bytes(data)


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE photos (name TEXT)")
    connection.close()
    with pytest.raises(StorageError, match="not a treewright ledger"):
        Ledger(path)


def test_a_locked_ledger_is_waited_for_and_then_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with Ledger(path, wait_seconds=0.2) as ledger:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LockActive, match="another process holds the ledger"):
            ledger.record([attempt()])
        other.execute("COMMIT")
        other.close()
        ledger.record([attempt()])
        assert len(ledger.query("SELECT * FROM attempts")) == 1


def test_two_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    script = (
        "import sys; from pathlib import Path\n"
        "from tests.orchestrator.test_ledger import attempt\n"
        "from treewright.orchestrator.ledger.ledger import Ledger\n"
        "with Ledger(Path(sys.argv[1])) as ledger:\n"
        "    for i in range(100): ledger.record([attempt(f'{sys.argv[2]}{i}')])\n"
    )
    root = Path(__file__).parents[2]
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(path), name], cwd=root)
        for name in ("a", "b")
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    with Ledger(path) as ledger:
        assert ledger.query("SELECT COUNT(*) FROM attempts")[0][0] == 200
        assert ledger.arms()["", MICRO].trials == 200


def test_a_new_ledger_of_a_project_is_hidden_from_git(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    with Ledger(tmp_path / ".treewright" / "ledger.db"):
        pass
    status = ["git", "status", "--short"]
    assert subprocess.run(status, cwd=tmp_path, check=True, capture_output=True).stdout == b""
    with Ledger(tmp_path / "elsewhere" / "ledger.db"):
        pass
    assert not (tmp_path / "elsewhere" / ".gitignore").exists()


HYPOTHESIS_FREE = GoalView("∀ (a b : Nat), a + b = b + a")


def test_a_remembered_script_is_proposed_for_an_equal_goal(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.update_tactic_cache(
        "∀ x y : Nat, x + y = y + x", tactics=["intro x y", "omega"], success_rate=0.9, avg_time=1.0
    )
    source = CachedTactics(LedgerTacticCache(ledger))
    answer = source.suggest([HYPOTHESIS_FREE], 0)
    assert [(c.tactic, c.prior) for c in answer.candidates] == [("intro x y\nomega", 0.9)]
    other = GoalView("∀ (a b : Nat), a + b = b")
    assert source.suggest([other], 0).candidates == ()
    ledger.close()


def test_what_succeeds_rarely_is_not_proposed(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.update_tactic_cache(
        HYPOTHESIS_FREE.target, tactics=["omega"], success_rate=0.7, avg_time=1.0
    )
    assert CachedTactics(LedgerTacticCache(ledger)).suggest([HYPOTHESIS_FREE], 0).candidates == ()
    ledger.close()
