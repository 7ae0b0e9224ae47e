"""SQLite files: the one way to open them, to change them, and to say what is wrong with them.

A connection for writing is in WAL mode and syncs every commit, so what was committed survives a
power cut. A connection for reading cannot write. A file's `application_id` says which kind of file
it is, and its `user_version` which version of that kind.
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
        with _one_look(connection):
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
    """A connection for any thread to a file of this kind, which is made if there is none.

    `wal` is for files that several processes write; without it a file can be read where nothing
    may be written.
    """
    if path.is_dir():
        raise StorageError(f"{path} is a directory, not a {schema.what}")
    atomic.make_directory(path.parent)
    with errors_for_people(path, schema.what, wait_seconds):
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
    """A connection for any thread that cannot write; rows have names. The file must be there.

    Raises StorageError where the file is of another kind or version; it may be new and empty.
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
    """Everything in the block or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk ends it by itself
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def _one_look(connection: sqlite3.Connection) -> Iterator[None]:
    """Reads in the block see one state of the file, whatever others commit meanwhile: between two
    looks another process may have filled and marked a new file."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


@contextlib.contextmanager
def errors_for_people(
    path: Path, what: str, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> Iterator[None]:
    """What SQLite says, as one line that says what to do."""
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
    """SQLite waits for others everywhere but here: to change the mode it reads first, and whoever
    holds a read lock is told at once that the file is locked, lest two wait for each other."""
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
            return  # another process was quicker
        # Not executescript: that would commit, and filling a file is one transaction.
        for statement in filter(None, (part.strip() for part in schema.tables.split(";"))):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {schema.version}")
        connection.execute(f"PRAGMA application_id = {schema.application_id}")
