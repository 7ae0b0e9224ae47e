"""The documents of the HTTP API: ledger statistics, the marketplace, health.

The ledger is read through a read-only connection and is neither changed nor created, so a view may
be open while runs are active. A ledger that does not exist yet gives empty documents.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import treewright
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import TreewrightError
from treewright.kernel.storage import database
from treewright.kernel.text import jsontext
from treewright.orchestrator.ledger.schema import SCHEMA, readable_errors
from treewright.orchestrator.ledger.statistics import AttemptCounts, is_stub_ledger, total
from treewright.orchestrator.marketplace.tickets import STATES, Ticket, TicketStatus, all_tickets

Document = dict[str, Any]

RECENT = 20
_RUNS = """
SELECT run_id, kind, subject, started_at, finished_at FROM runs ORDER BY started_at DESC LIMIT ?
"""
_ARMS = "SELECT * FROM bandit WHERE goal_class = ''"
_WAIT_SECONDS = 5.0


@contextlib.contextmanager
def open_for_reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Open a ledger for reading, with rows by name; yield None if there is no ledger yet."""
    if not path.is_file():
        yield None
        return
    with readable_errors(path, _WAIT_SECONDS):
        connection = database.open_read_only(path, SCHEMA, _WAIT_SECONDS)
        try:
            yield None if SCHEMA.is_new(connection, path) else connection
        finally:
            connection.close()


def stats(path: Path) -> Document:
    """Return the document of `GET /api/stats`."""
    with open_for_reading(path) as connection:
        return _stats_of(connection, stubs=is_stub_ledger(path))


def marketplace(path: Path, now: float | None = None) -> Document:
    """Return the document of `GET /api/marketplace`."""
    with open_for_reading(path) as connection:
        tickets = all_tickets(connection) if connection is not None else []
    return marketplace_of(tickets, time.time() if now is None else now)


def health(path: Path) -> Document:
    """Return the document of `GET /api/health`.

    `status` is `ok`, `absent` (no ledger yet) or `error`. Only the head of the file is read, since
    clients ask every few seconds.
    """
    document = {
        "status": "absent",
        "detail": "no run has made a ledger here yet",
        "treewright": treewright.__version__,
        "ledger": str(path),
        "ledger_version": None,
        "time": timestamp(),
    }
    try:
        with open_for_reading(path) as connection:
            if connection is None:
                return document
    except TreewrightError as error:
        return document | {"status": "error", "detail": str(error)}
    return document | {"status": "ok", "detail": "", "ledger_version": SCHEMA.version}


def _stats_of(connection: sqlite3.Connection | None, *, stubs: bool = False) -> Document:
    document: Document = {
        "stubs": stubs,
        "attempts": 0,
        "successes": 0,
        "goals": {"tried": 0, "solved": 0},
        "strategies": {},
        "recent": [],
        "tactic_cache": {"entries": 0, "uses": 0, "top": []},
        "runs": [],
    }
    if connection is None:
        return document
    counting = AttemptCounts(lambda sql, values: connection.execute(sql, values).fetchall(), stubs)
    document["strategies"] = _strategies(connection, counting)
    for what in ("attempts", "successes"):
        document[what] = total(document["strategies"], what)
    document["goals"] = counting.goals()
    document["recent"] = [_attempt(row) for row in _recent(connection)]
    document["tactic_cache"] = _cache(connection)
    document["runs"] = [dict(row) for row in connection.execute(_RUNS, (RECENT,))]
    return document


def _strategies(connection: sqlite3.Connection, counting: AttemptCounts) -> Document:
    """Return the sums of each strategy, with its averages in the bandit."""
    arms = {row["strategy"]: dict(row) for row in connection.execute(_ARMS)}
    return {
        name: sums | {"bandit": arms.get(name)} for name, sums in counting.by_strategy().items()
    }


def _recent(connection: sqlite3.Connection) -> list[sqlite3.Row]:
    return connection.execute(
        "SELECT * FROM attempts ORDER BY id DESC LIMIT ?", (RECENT,)
    ).fetchall()


def _attempt(row: sqlite3.Row) -> Document:
    shown = ("goal_hash", "goal_text", "strategy", "status", "time_seconds", "error", "timestamp")
    found = {name: row[name] for name in shown}
    return found | {"success": bool(row["success"]), "tactics": jsontext.decode(row["tactics"])}


def _cache(connection: sqlite3.Connection) -> Document:
    entries, uses = connection.execute(
        "SELECT count(*), coalesce(sum(use_count), 0) FROM tactic_cache"
    ).fetchone()
    top = connection.execute(
        "SELECT goal_text, tactics, success_rate, avg_time, use_count FROM tactic_cache "
        "ORDER BY use_count DESC, goal_hash LIMIT ?",
        (RECENT,),
    )
    return {
        "entries": entries,
        "uses": uses,
        "top": [dict(row) | {"tactics": jsontext.decode(row["tactics"])} for row in top],
    }


def marketplace_of(tickets: list[Ticket], now: float) -> Document:
    """Return the tickets, most urgent first, and counts by status; expired claims are open."""
    shown = []
    counts = {str(status): 0 for status in STATES}
    for ticket in tickets:
        expired = ticket.status is TicketStatus.CLAIMED and (ticket.claim_expires or 0) <= now
        status = TicketStatus.OPEN if expired else ticket.status
        counts[status] += 1
        document = msgspec.to_builtins(ticket) | {"status": str(status), "name": ticket.name}
        del document["similarity"]
        shown.append(document)
    return {"total": len(tickets), "by_status": counts, "tickets": shown}
