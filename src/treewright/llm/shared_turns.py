"""Everybody on this machine who asks one endpoint takes turns: threads and processes alike.

The turns are rows of a small SQLite file in the user's cache directory, by address and key
variable. A row is `waiting`, then `under_way`, then `over` for the rest of its minute. Nobody's
end can block the others: a row under way whose process is gone, or whose time limit has passed,
is over, and a row that waits counts only while its owner keeps asking. A `Retry-After` that one
was told holds for all. Losing the file costs a minute's memory and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from treewright.kernel.errors import LockActive, StorageError
from treewright.kernel.procs import proctree
from treewright.kernel.storage import database
from treewright.llm.limits import MINUTE, Lately, Limits, wait

LONGEST_HOLD_SECONDS = 3600.0
"""A longer `Retry-After` is not believed: a wrong header must not close an endpoint for all."""
_FRESH_SECONDS = 5.0
_SLACK_SECONDS = 30.0
_BUSY_SECONDS = 0.5
_LEAVING_SECONDS = 5.0
_TABLES = """
CREATE TABLE turns (
    id INTEGER PRIMARY KEY AUTOINCREMENT, endpoint TEXT NOT NULL, state TEXT NOT NULL,
    at REAL NOT NULL, until REAL NOT NULL, tokens INTEGER NOT NULL,
    pid INTEGER NOT NULL, started TEXT NOT NULL, namespace TEXT NOT NULL,
    places INTEGER, requests INTEGER, token_limit INTEGER);
CREATE INDEX turns_by_endpoint ON turns (endpoint, state, at);
CREATE TABLE holds (
    endpoint TEXT PRIMARY KEY, told_at REAL NOT NULL, until REAL NOT NULL);
"""

_MARK = 0x54575455  # "TWTU"
_SCHEMA = database.Schema("queue", _MARK, _TABLES)
_Bounds = tuple[int | None, int | None, int | None]


class Busy(Exception):
    """Another process has the file; it may be stopped in the middle of a transaction."""


class Unusable(Exception):
    """The shared file cannot be used. Its text goes on from the name of the endpoint."""


class SharedTurns:
    """The queue of one endpoint. Holds nothing open between calls, so it may be forked."""

    def __init__(
        self, path: Path, endpoint: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._endpoint = endpoint
        self._clock = clock  # of the whole machine: since its start
        self._entered: dict[int, _Bounds] = {}

    def enter(self, limits: Limits, tokens: int) -> int:
        """Joins the queue; the ticket is the place in it."""
        bounds = (limits.places, limits.requests, limits.tokens)
        with self._transaction() as (rows, now):
            ticket = self._insert(rows, None, now, tokens, bounds)
        self._entered[ticket] = bounds
        return ticket

    def take(self, ticket: int, tokens: int, seconds: float) -> tuple[float | None, float]:
        """As `limits.wait`; at 0 the turn has begun, and lasts for at most `seconds`. And for how
        long the endpoint wants to be left alone."""
        with self._transaction() as (rows, now):
            # Before anything is forgotten: who was stopped for a minute waits all the same, and
            # has its place back if others took it for gone.
            if not rows.execute("UPDATE turns SET at = ? WHERE id = ?", (now, ticket)).rowcount:
                self._insert(rows, ticket, now, tokens, self._entered[ticket])
            self._forget(rows, now)
            limits, lately = self._lately(rows, ticket, now)
            answer = wait(limits, lately, now, tokens)
            if answer == 0:
                rows.execute(
                    "UPDATE turns SET state = 'under_way', until = ? WHERE id = ?",
                    (now + seconds + _SLACK_SECONDS, ticket),
                )
            return answer, max(0.0, lately.held_until - now)

    def leave(self, ticket: int, tokens: int | None = None) -> None:
        """Ends a turn, or the wait for one. `tokens` is what it really cost, if that is known."""
        self._entered.pop(ticket, None)
        with self._transaction(_LEAVING_SECONDS) as (rows, _):
            _end(rows, ticket, tokens)

    def hold(self, seconds: float) -> None:
        """Nobody goes ahead for so long. A shorter hold does not shorten a longer one."""
        with self._transaction(_LEAVING_SECONDS) as (rows, now):
            self._forget(rows, now)
            until = now + min(seconds, LONGEST_HOLD_SECONDS)
            rows.execute(
                "INSERT INTO holds VALUES (?, ?, ?) ON CONFLICT (endpoint) "
                "DO UPDATE SET told_at = excluded.told_at, until = max(until, excluded.until)",
                (self._endpoint, now, until),
            )

    def _insert(
        self, rows: sqlite3.Connection, ticket: int | None, now: float, tokens: int, bounds: _Bounds
    ) -> int:
        cursor = rows.execute(
            "INSERT INTO turns (id, endpoint, state, at, until, tokens, pid, started, namespace, "
            "places, requests, token_limit) VALUES (?, ?, 'waiting', ?, 0, ?, ?, ?, ?, ?, ?, ?)",
            (ticket, self._endpoint, now, tokens, *_process(), *bounds),
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _lately(self, rows: sqlite3.Connection, ticket: int, now: float) -> tuple[Limits, Lately]:
        mine = (self._endpoint,)
        limits = Limits(
            *rows.execute(
                "SELECT min(places), min(requests), min(token_limit) FROM turns WHERE endpoint = ?",
                mine,
            ).fetchone()
        )
        ahead, wanted = rows.execute(
            "SELECT count(*), total(tokens) FROM turns WHERE endpoint = ? AND state = 'waiting' "
            "AND id < ? AND at > ?",
            (*mine, ticket, now - _FRESH_SECONDS),
        ).fetchone()
        (under_way,) = rows.execute(
            "SELECT count(*) FROM turns WHERE endpoint = ? AND state = 'under_way'", mine
        ).fetchone()
        sent: list[tuple[float, int]] = []
        if limits.requests is not None or limits.tokens is not None:
            sent = rows.execute(
                "SELECT at, tokens FROM turns WHERE endpoint = ? AND state != 'waiting' "
                "AND at > ? ORDER BY at",
                (*mine, now - MINUTE),
            ).fetchall()
        held_until = _held_until(rows, self._endpoint, now)
        return limits, Lately(under_way, sent, held_until, ahead, int(wanted))

    def _forget(self, rows: sqlite3.Connection, now: float) -> None:
        """What is over for a minute, what nobody waits for, who is gone. What is of the future
        is from before the machine was started again."""
        rows.execute("DELETE FROM turns WHERE at > ?", (now,))
        rows.execute("DELETE FROM holds WHERE told_at > ? OR until <= ?", (now, now))
        rows.execute("DELETE FROM turns WHERE until < ? AND at <= ?", (now, now - MINUTE))
        here = proctree.namespace()
        for ticket, state, until, pid, started, namespace in rows.execute(
            "SELECT id, state, until, pid, started, namespace FROM turns "
            "WHERE endpoint = ? AND state != 'over'",
            (self._endpoint,),
        ).fetchall():
            gone = namespace == here and not proctree.is_alive(pid, started)
            if gone or (state == "under_way" and until <= now):
                _end(rows, ticket)

    @contextlib.contextmanager
    def _transaction(
        self, patience: float = _BUSY_SECONDS
    ) -> Iterator[tuple[sqlite3.Connection, float]]:
        """The file for us alone, and the time since when it is."""
        try:
            # Without WAL: the cache directory may be on a disk that several machines share.
            with contextlib.closing(
                database.open_database(self._path, _SCHEMA, patience, wal=False)
            ) as rows:
                # Ours can be killed at any time, and that loses nothing; a power cut may.
                rows.execute("PRAGMA synchronous = OFF")
                with (
                    database.errors_for_people(self._path, _SCHEMA.what, patience),
                    database.transaction(rows),
                ):
                    yield rows, self._clock()
        except LockActive:
            raise Busy from None
        except (StorageError, OSError) as error:
            raise Unusable(
                f"cannot be shared with other processes: {error}; make {self._path} writable, "
                "delete it if it is damaged, or set TREEWRIGHT_CACHE"
            ) from None


def _end(rows: sqlite3.Connection, ticket: int, tokens: int | None = None) -> None:
    """Who only waited was never there; what was under way counts for the rest of its minute."""
    rows.execute("DELETE FROM turns WHERE id = ? AND state = 'waiting'", (ticket,))
    rows.execute(
        "UPDATE turns SET state = 'over', until = 0, tokens = coalesce(?, tokens) WHERE id = ?",
        (tokens, ticket),
    )


def _held_until(rows: sqlite3.Connection, endpoint: str, now: float) -> float:
    found = rows.execute(
        "SELECT until FROM holds WHERE endpoint = ? AND told_at <= ?", (endpoint, now)
    ).fetchone()
    return found[0] if found else float("-inf")


def _process() -> tuple[int, str, str]:
    pid = os.getpid()
    return pid, proctree.start_time(pid), proctree.namespace()
