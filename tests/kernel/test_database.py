"""SQLite files: opened in one way, and never overwritten."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import treewright
from treewright.kernel.errors import LockActive, StorageError
from treewright.kernel.storage import database
from treewright.kernel.storage.database import Schema, open_database, open_read_only

TABLES = "CREATE TABLE things (id INTEGER PRIMARY KEY); INSERT INTO things VALUES (1)"
SHELF = Schema("shelf", 0x1234, TABLES)


def facts(connection: sqlite3.Connection, *names: str) -> list[object]:
    return [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]


def test_only_the_database_module_opens_sqlite() -> None:
    source = Path(treewright.__file__).parent
    found = [p.name for p in source.rglob("*.py") if "sqlite3.connect(" in p.read_text("utf-8")]
    assert found == ["database.py"]


def test_a_new_file_is_durable_and_marked(tmp_path: Path) -> None:
    path = tmp_path / "below" / "shelf.db"
    connection = open_database(path, SHELF)
    names = ("journal_mode", "synchronous", "foreign_keys", "user_version", "application_id")
    assert facts(connection, *names) == ["wal", 2, 1, 1, 0x1234]
    connection.close()


def test_without_wal_a_file_can_be_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    connection = open_database(path, SHELF, wal=False)
    assert facts(connection, "journal_mode") == ["delete"]
    connection.close()


def test_a_database_of_another_program_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE other (x)")
    foreign.commit()
    foreign.close()
    before = path.read_bytes()
    with pytest.raises(StorageError, match="not a treewright shelf; name another file"):
        open_database(path, SHELF)
    assert path.read_bytes() == before
    (tmp_path / "text.db").write_text("not a database at all, but long enough to look like one")
    with pytest.raises(StorageError, match="is damaged"):
        open_database(tmp_path / "text.db", SHELF)
    with pytest.raises(StorageError, match="is a directory, not a shelf"):
        open_database(tmp_path, SHELF)


def test_tables_that_cannot_be_made_leave_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    broken = Schema("shelf", 0x1234, f"{TABLES}; SELECT * FROM nowhere")
    with pytest.raises(StorageError, match=r"the shelf .* cannot be used: no such table"):
        open_database(path, broken)
    connection = open_database(path, SHELF)
    assert connection.execute("SELECT * FROM things").fetchall() == [(1,)]
    connection.close()


@pytest.mark.parametrize("version", [0, 2])
def test_a_file_of_another_version_is_refused(tmp_path: Path, version: int) -> None:
    path = tmp_path / "shelf.db"
    connection = open_database(path, SHELF, wal=False)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    said = f"is a shelf of version {version}, this treewright reads version 1; use the treewright"
    for opened in (open_database, open_read_only):
        with pytest.raises(StorageError, match=said):
            opened(path, SHELF)
    assert path.read_bytes() == before


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    open_database(path, SHELF).close()
    connection = open_read_only(path, SHELF)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM things")
    assert connection.execute("SELECT id FROM things").fetchone()["id"] == 1
    connection.close()


def test_a_held_file_names_the_file_and_the_wait(tmp_path: Path) -> None:
    path = tmp_path / "shelf.db"
    holder, other = (open_database(path, SHELF, 0.05) for _ in range(2))
    with (
        database.transaction(holder),
        pytest.raises(LockActive, match=r"holds the shelf .*shelf\.db \(waited 0\.05 s\)"),
        database.readable_errors(path, "shelf", 0.05),
        database.transaction(other),
    ):
        raise AssertionError("two at once")
    holder.close()
    other.close()


def test_many_that_make_the_same_new_file_at_once(tmp_path: Path) -> None:
    """A file that another process is filling is not mistaken for a foreign one."""
    for turn in range(15):
        path = tmp_path / f"{turn}.db"
        together = threading.Barrier(6)

        def make(path: Path = path, together: threading.Barrier = together) -> None:
            together.wait()
            open_database(path, SHELF).close()

        with ThreadPoolExecutor(6) as threads:
            for made in [threads.submit(make) for _ in range(6)]:
                made.result()


def test_a_change_of_mode_waits_for_another_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite says "locked" at once there, whatever its time-out: we try again until it is ours."""
    path = tmp_path / "shelf.db"
    holder = open_database(path, SHELF, wal=False)
    holder.execute("BEGIN IMMEDIATE")
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            holder.execute("COMMIT")

    monkeypatch.setattr(database.time, "sleep", pause)
    connection = open_database(path, SHELF)
    assert facts(connection, "journal_mode") == ["wal"]
    assert len(waits) == 3
    connection.close()
    holder.close()
