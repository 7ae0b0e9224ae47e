"""SQLite files: the one way to open them, to change them, to bring them up to date, and to say
what is wrong with them.

A connection for writing is in WAL mode and syncs every commit, so what was committed survives a
power cut. One for reading cannot write. A file knows whose it is by its `application_id` and how
old by its `user_version`; a `Schema` is the table of migrations from one version to the next.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treewright.kernel import atomic
from treewright.kernel.errors import LockActive, StorageError

DEFAULT_WAIT_SECONDS = 20.0
_BETWEEN_TRIES_SECONDS = 0.01

Migration = Callable[[sqlite3.Connection], None]


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a kind of file, version by version.

    The n-th migration (from 1) makes version n of version n - 1. A released one is never changed.
    `unmarked` gives the version of a file without our `application_id` (0 if it may be filled as a
    new one), or None if it is not ours. `what` is what people call such a file.
    """

    what: str
    application_id: int
    migrations: tuple[Migration, ...]
    unmarked: Callable[[sqlite3.Connection], int | None]

    @property
    def version(self) -> int:
        return len(self.migrations)

    def version_of(self, connection: sqlite3.Connection, path: Path) -> int:
        """The version of a file; 0 if it is new. Raises StorageError if it is not one of these."""
        with _one_look(connection):
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            is_ours = application == self.application_id
            found = 0 if is_ours or not tables(connection) else self.unmarked(connection)
        if not is_ours:
            if found is None:
                raise StorageError(
                    f"{path} is a database, but not a treewright {self.what}; name another file"
                )
            return found
        if version > self.version:
            raise StorageError(
                f"{path} was written by a newer treewright ({self.what} version {version}, this "
                f"one reads up to {self.version}); upgrade treewright or name another {self.what}"
            )
        return version


def script(text: str) -> Migration:
    """A migration out of statements that are separated by `;`."""

    def apply(connection: sqlite3.Connection) -> None:
        # Not executescript: that would commit, and a migration is one transaction.
        for statement in filter(None, (part.strip() for part in text.split(";"))):
            connection.execute(statement)

    return apply


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def open_database(
    path: Path, schema: Schema, wait_seconds: float = DEFAULT_WAIT_SECONDS, *, wal: bool = True
) -> sqlite3.Connection:
    """A connection for any thread to an up-to-date file, which is made if there is none.

    Nothing is overwritten: a file is copied before it is migrated. `wal` is for files that several
    processes write; without it a file can be read where nothing may be written.
    """
    if path.is_dir():
        raise StorageError(f"{path} is a directory, not a {schema.what}")
    atomic.make_directory(path.parent)
    with errors_for_people(path, schema.what, wait_seconds):
        connection = _connect(path, "rwc", wait_seconds)
        try:
            version = schema.version_of(connection, path)
            if wal:
                _use_wal(connection, wait_seconds)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if version < schema.version or not _is_marked(connection, schema):
                _migrate(connection, schema, path)
        except BaseException:
            connection.close()
            raise
    return connection


def open_read_only(path: Path, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> sqlite3.Connection:
    """A connection for any thread that cannot write; rows have names. The file must be there."""
    connection = _connect(path, "ro", wait_seconds)
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


def _is_marked(connection: sqlite3.Connection, schema: Schema) -> bool:
    return connection.execute("PRAGMA application_id").fetchone() == (schema.application_id,)


def _migrate(connection: sqlite3.Connection, schema: Schema, path: Path) -> None:
    with transaction(connection):
        version = schema.version_of(connection, path)  # another process may have been quicker
        if 0 < version < schema.version:
            _keep_copy(path, version)
        for migration in schema.migrations[version:]:
            migration(connection)
        connection.execute(f"PRAGMA user_version = {schema.version}")
        connection.execute(f"PRAGMA application_id = {schema.application_id}")


def _keep_copy(path: Path, version: int) -> None:
    """A consistent copy beside the file, by SQLite's own backup; an older copy stays."""
    copy = path.with_name(f"{path.name}.v{version}.backup")
    number = 1
    while copy.exists():
        number += 1
        copy = path.with_name(f"{path.name}.v{version}.backup{number}")
    source, target = open_read_only(path), sqlite3.connect(copy)
    try:
        source.backup(target)
    finally:
        source.close()
        target.close()
