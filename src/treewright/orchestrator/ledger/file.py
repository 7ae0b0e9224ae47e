"""Opening the ledger's file: new, of an older version, locked, damaged, or not a ledger at all.

Nothing is overwritten: a ledger is copied before it is migrated, and a file that is not one of
ours is left as it is.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from treewright.kernel import atomic
from treewright.kernel.errors import LockActive, StorageError
from treewright.orchestrator.ledger import migrations

DEFAULT_WAIT_SECONDS = 20.0


def open_ledger(path: Path, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> sqlite3.Connection:
    """A connection to an up-to-date ledger; every commit survives a power cut."""
    if path.is_dir():
        raise StorageError(f"{path} is a directory, not a ledger")
    atomic.make_directory(path.parent)
    with errors_for_people(path, wait_seconds):
        connection = sqlite3.connect(
            path, timeout=wait_seconds, isolation_level=None, check_same_thread=False
        )
        try:
            version = _version(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            if version < migrations.VERSION:
                _migrate(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _version(connection: sqlite3.Connection, path: Path) -> int:
    """The ledger's version; 0 if the file is new."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if version > migrations.VERSION and application == migrations.APPLICATION_ID:
        raise StorageError(
            f"{path} was written by a newer treewright (ledger version {version}, this one reads "
            f"up to {migrations.VERSION}); upgrade treewright or name another ledger"
        )
    if application == migrations.APPLICATION_ID or not tables - {"tickets"}:
        return version if application else 0
    columns = {row[1] for row in connection.execute("PRAGMA table_info(attempts)")}
    if {"goal_hash", "goal_text", "strategy", "success"} <= columns:
        return 1  # written before ledgers carried a version
    raise StorageError(f"{path} is a database, but not a treewright ledger; name another file")


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection, path)  # another process may have been quicker
        if version < migrations.VERSION:
            if version:
                _keep_copy(path, version)
            migrations.apply(connection, version)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _keep_copy(path: Path, version: int) -> None:
    """A consistent copy beside the ledger, by SQLite's own backup; an older copy stays."""
    copy = path.with_name(f"{path.name}.v{version}.backup")
    number = 1
    while copy.exists():
        number += 1
        copy = path.with_name(f"{path.name}.v{version}.backup{number}")
    source = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
    target = sqlite3.connect(copy)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()


@contextlib.contextmanager
def errors_for_people(path: Path, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Iterator[None]:
    """What SQLite says, as one line that says what to do."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise LockActive(
                f"another process holds the ledger {path} (waited {wait_seconds:g} s); "
                "end it or try again"
            ) from error
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            raise StorageError(
                f"the ledger {path} is damaged ({error}); nothing was changed: move it away, or "
                "recover what is left with `sqlite3 FILE .recover`"
            ) from error
        raise StorageError(f"the ledger {path} cannot be used: {error}") from error
    except msgspec.DecodeError as error:
        raise StorageError(f"a row of the ledger {path} is damaged: {error}") from error
