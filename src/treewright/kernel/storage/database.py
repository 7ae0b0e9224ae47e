"""SQLite files: opening them, transactions, and readable errors.

A connection for writing is in WAL mode and syncs every commit, so a commit survives a power cut. A
connection for reading cannot write. The `application_id` of a file is its kind, and its
`user_version` the version of that kind.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel.errors import LockActive, StorageError
from treewright.kernel.storage import atomic

DEFAULT_WAIT_SECONDS = 20.0
_BETWEEN_TRIES_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class Schema:
    """A kind of SQLite file.

    `what` is its name in messages. `tables` are the SQL statements, separated by `;`, that fill a
    new file. `version` is raised when the tables change; a file of another version is refused with
    `remedy`, which says what to do.
    """

    what: str
    application_id: int
    tables: str
    version: int = 1
    remedy: str = "use the treewright that wrote it, or name another file"

    def is_new(self, connection: sqlite3.Connection, path: Path) -> bool:
        """Return whether the file is empty. Raises StorageError if it is not of this kind and
        version."""
        with _one_snapshot(connection):
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application == self.application_id:
            if version != self.version:
                raise StorageError(
                    f"{path} is a {self.what} of version {version}, this treewright reads version "
                    f"{self.version}; {self.remedy}"
                )
            return False
        if count:
            raise StorageError(
                f"{path} is a database, but not a treewright {self.what}; name another file"
            )
        return True


def open_database(
    path: Path, schema: Schema, wait_seconds: float = DEFAULT_WAIT_SECONDS, *, wal: bool = True
) -> sqlite3.Connection:
    """Return a connection to a file of this kind, for any thread; create the file if it is missing.

    Args:
        path: The file.
        schema: Its kind and version.
        wait_seconds: The longest wait for a lock of another process.
        wal: Use WAL mode, for files that several processes write. Without it the file can be read
            in a directory that is not writable.

    Raises:
        StorageError: The file is of another kind or version, or is damaged.
        LockActive: Another process holds a lock for too long.
    """
    if path.is_dir():
        raise StorageError(f"{path} is a directory, not a {schema.what}")
    atomic.make_directory(path.parent)
    with readable_errors(path, schema.what, wait_seconds):
        connection = _connect(path, "rwc", wait_seconds)
        try:
            is_new = schema.is_new(connection, path)
            if wal:
                _use_wal(connection, wait_seconds)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if is_new:
                _fill(connection, schema, path)
        except BaseException:
            connection.close()
            raise
    return connection


def open_read_only(
    path: Path, schema: Schema, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> sqlite3.Connection:
    """Return a connection that cannot write, for any thread; its rows have names.

    The file must exist; it may be empty.

    Raises:
        StorageError: The file is of another kind or version.
    """
    connection = _connect(path, "ro", wait_seconds)
    try:
        schema.is_new(connection, path)
    except BaseException:
        connection.close()
        raise
    connection.row_factory = sqlite3.Row
    return connection


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit everything in the block, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # on a full disk SQLite has rolled back already
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def _one_snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Let all reads in the block see the same state of the file.

    Between two separate reads another process may fill a new file.
    """
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


@contextlib.contextmanager
def readable_errors(
    path: Path, what: str, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> Iterator[None]:
    """Turn errors of SQLite in the block into one-line errors that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise LockActive(
                f"another process holds the {what} {path} (waited {wait_seconds:g} s); "
                "end it or try again"
            ) from error
        if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
            raise StorageError(
                f"the {what} {path} is damaged ({error}); nothing was changed: move it away, or "
                "recover what is left with `sqlite3 FILE .recover`"
            ) from error
        raise StorageError(f"the {what} {path} cannot be used: {error}") from error
    except msgspec.DecodeError as error:
        raise StorageError(f"a row of the {what} {path} is damaged: {error}") from error


def _use_wal(connection: sqlite3.Connection, wait_seconds: float) -> None:
    """Switch to WAL mode, waiting for other processes.

    SQLite itself does not wait here: the change of mode upgrades a read lock, and a wait could
    block two processes for ever.
    """
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            is_busy = (error.sqlite_errorname or "").startswith("SQLITE_BUSY")
            if not is_busy or time.monotonic() > deadline:
                raise
        time.sleep(_BETWEEN_TRIES_SECONDS)


def _connect(path: Path, mode: str, wait_seconds: float) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=wait_seconds,
        isolation_level=None,
        check_same_thread=False,
    )


def _fill(connection: sqlite3.Connection, schema: Schema, path: Path) -> None:
    with transaction(connection):
        if not schema.is_new(connection, path):
            return  # another process has filled it
        # Not executescript, which would commit: filling a file is one transaction.
        for statement in filter(None, (part.strip() for part in schema.tables.split(";"))):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {schema.version}")
        connection.execute(f"PRAGMA application_id = {schema.application_id}")
