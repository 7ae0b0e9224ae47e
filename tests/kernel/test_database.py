"""SQLite files: opened in one way, migrated by one table, and never overwritten."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import treewright
from treewright.kernel import database
from treewright.kernel.database import Schema, open_database, open_read_only, script
from treewright.kernel.errors import LockActive, StorageError

FIRST = script("CREATE TABLE things (id INTEGER PRIMARY KEY); INSERT INTO things VALUES (1)")
SECOND = script("ALTER TABLE things ADD COLUMN name TEXT NOT NULL DEFAULT 'x'")


def schema(*migrations: database.Migration) -> Schema:
    return Schema("shelf", 0x1234, migrations, lambda _: None)


def facts(connection: sqlite3.Connection, *names: str) -> list[object]:
    return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]


def test_nobody_else_opens_sqlite() -> None:
    source = Path(treewright.__file__).parent
    found = [p.name for p in source.rglob("*.py") if "sqlite3.connect(" in p.read_text("utf-8")]
    assert found == ["database.py"]


def test_a_new_file_is_durable_marked_and_of_the_last_version(tmp_path: Path) -> None:
    path = tmp_path / "below" / "shelf.db"
    connection = open_database(path, schema(FIRST, SECOND))
    names = ("journal_mode", "synchronous", "foreign_keys", "user_version", "application_id")
    assert facts(connection, *names) == ["wal", 2, 1, 2, 0x1234]
    connection.close()


def test_without_wal_a_file_can_be_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    connection = open_database(path, schema(FIRST), wal=False)
    assert facts(connection, "journal_mode") == ["delete"]
    connection.close()


def test_an_older_file_is_copied_and_migrated_once(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    open_database(path, schema(FIRST)).close()
    for _ in range(2):
        connection = open_database(path, schema(FIRST, SECOND))
        assert connection.execute("SELECT * FROM things").fetchall() == [(1, "x")]
        connection.close()
    (kept,) = tmp_path.glob("*.backup*")
    copy = open_read_only(kept)
    assert [tuple(row) for row in copy.execute("SELECT * FROM things")] == [(1,)]
    copy.close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    open_database(path, schema(FIRST)).close()
    broken = script("DELETE FROM things; SELECT * FROM nowhere")
    with pytest.raises(StorageError, match=r"the shelf .* cannot be used: no such table"):
        open_database(path, schema(FIRST, broken))
    connection = open_database(path, schema(FIRST))
    assert connection.execute("SELECT * FROM things").fetchall() == [(1,)]
    connection.close()


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE other (x)")
    foreign.commit()
    foreign.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match="not a treewright shelf; name another file"):
        open_database(path, schema(FIRST))
    assert path.read_bytes() == before
    (tmp_path / "text.db").write_text("not a database at all, but long enough to look like one")
    with pytest.raises(StorageError, match="is damaged"):
        open_database(tmp_path / "text.db", schema(FIRST))
    with pytest.raises(StorageError, match="is a directory, not a shelf"):
        open_database(tmp_path, schema(FIRST))


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    open_database(path, schema(FIRST, SECOND)).close()
    with pytest.raises(StorageError, match=r"newer treewright \(shelf version 2"):
        open_database(path, schema(FIRST))


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    open_database(path, schema(FIRST)).close()
    connection = open_read_only(path)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM things")
    assert connection.execute("SELECT id FROM things").fetchone()["id"] == 1
    connection.close()


def test_a_held_file_names_the_file_and_the_wait(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    holder, other = (open_database(path, schema(FIRST), 0.05) for _ in range(2))
    with (
        database.transaction(holder),
        pytest.raises(LockActive, match=r"holds the shelf .*shelf\.db \(waited 0\.05 s\)"),
        database.errors_for_people(path, "shelf", 0.05),
        database.transaction(other),
    ):
        raise AssertionError("two at once")
    holder.close()
    other.close()


def test_many_that_make_the_same_new_file_at_once(tmp_path: Path) -> None:
    """Nobody takes a file that another one has just filled and not yet marked for a stranger's."""
    for turn in range(15):
        path = tmp_path / f"{turn}.db"
        together = threading.Barrier(6)

        def make(path: Path = path, together: threading.Barrier = together) -> None:
            together.wait()
            open_database(path, schema(FIRST, SECOND)).close()

        with ThreadPoolExecutor(6) as threads:
            for made in [threads.submit(make) for _ in range(6)]:
                made.result()


def test_who_changes_the_mode_waits_for_another_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says "locked" at once there, whatever its time-out: we try again until it is ours."""
    path = tmp_path / "shelf.db"
    holder = open_database(path, schema(FIRST), wal=False)
    holder.execute("BEGIN IMMEDIATE")
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            holder.execute("COMMIT")

    monkeypatch.setattr(database.time, "sleep", pause)
    connection = open_database(path, schema(FIRST))
    assert facts(connection, "journal_mode") == ["wal"]
    assert len(waits) == 3
    connection.close()
    holder.close()
