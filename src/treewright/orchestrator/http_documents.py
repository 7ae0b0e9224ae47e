"""The documents of the HTTP API: ledger statistics, the marketplace, health.

The ledger is read through a read-only connection and is neither changed nor created, so a view may
be open while runs are active. A ledger that does not exist yet gives empty documents.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

import treewright
from treewright.kernel.clock import timestamp
from treewright.kernel.errors import TreewrightError
from treewright.kernel.text import jsontext
from treewright.orchestrator.ledger.attempts import AttemptCounts, is_stub_ledger, total
from treewright.orchestrator.ledger.schema import SCHEMA, open_for_reading
from treewright.orchestrator.marketplace.tickets import STATES, TicketStatus, all_tickets

Document = dict[str, Any]

RECENT = 20
_RUNS = """
SELECT run_id, kind, subject, started_at, finished_at FROM runs ORDER BY started_at DESC LIMIT ?
"""
_ARMS = "SELECT * FROM bandit WHERE goal_class = ''"
_RECENT = "SELECT * FROM attempts ORDER BY id DESC LIMIT ?"
_ATTEMPT_FIELDS = (
    "goal_hash", "goal_text", "strategy", "status", "time_seconds", "error", "timestamp",
)  # fmt: skip
_CACHE = "SELECT count(*), coalesce(sum(use_count), 0) FROM tactic_cache"
_TOP_TACTICS = """
SELECT goal_text, tactics, success_rate, avg_time, use_count FROM tactic_cache
ORDER BY use_count DESC, goal_hash LIMIT ?
"""


def stats(path: Path) -> Document:
    """Return the document of `GET /api/stats`."""
    document: Document = {
        "stubs": is_stub_ledger(path),
        "attempts": 0,
        "successes": 0,
        "goals": {"tried": 0, "solved": 0},
        "strategies": {},
        "recent": [],
        "tactic_cache": {"entries": 0, "uses": 0, "top": []},
        "runs": [],
    }
    with open_for_reading(path) as connection:
        if connection is None:
            return document

        def query(sql: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
            return connection.execute(sql, values).fetchall()

        counts = AttemptCounts(query, document["stubs"])
        arms = {row["strategy"]: dict(row) for row in query(_ARMS)}
        strategies = {
            name: sums | {"bandit": arms.get(name)} for name, sums in counts.by_strategy().items()
        }
        ((entries, uses),) = query(_CACHE)
        return document | {
            "attempts": total(strategies, "attempts"),
            "successes": total(strategies, "successes"),
            "goals": counts.goals(),
            "strategies": strategies,
            "recent": [
                {name: row[name] for name in _ATTEMPT_FIELDS}
                | {"success": bool(row["success"]), "tactics": jsontext.decode(row["tactics"])}
                for row in query(_RECENT, (RECENT,))
            ],
            "tactic_cache": {
                "entries": entries,
                "uses": uses,
                "top": [
                    dict(row) | {"tactics": jsontext.decode(row["tactics"])}
                    for row in query(_TOP_TACTICS, (RECENT,))
                ],
            },
            "runs": [dict(row) for row in query(_RUNS, (RECENT,))],
        }


def marketplace(path: Path, now: float | None = None) -> Document:
    """Return the document of `GET /api/marketplace`: tickets, most urgent first, and counts.

    A ticket with an expired claim is open. `now` is the time, by default the current one.
    """
    now = time.time() if now is None else now
    with open_for_reading(path) as connection:
        tickets = all_tickets(connection) if connection is not None else []
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
