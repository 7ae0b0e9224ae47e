"""The orchestrator's ledger for the pages and for `/api/stats` and its siblings. Read-only.

The ledger's tables are a published format; ones that an older ledger does not have, and
columns likewise, are taken as empty.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from treewright.dashboard.roots import RunRef

_WAIT_SECONDS = 2.0
_RECENT = 60
_MOST_TICKETS = 200
_MOST_RUNS = 50
_POINTS = 60


def stats(run: RunRef | None) -> dict[str, Any]:
    """Totals over the ledger, and by strategy."""
    with _ledger(run) as ledger:
        return _stats(ledger)


def marketplace(run: RunRef | None) -> dict[str, Any]:
    """Tickets by status, and the latest of them."""
    with _ledger(run) as ledger:
        return _marketplace(ledger)


def health(run: RunRef | None) -> dict[str, Any]:
    """Whether there is a ledger and whether it can be read."""
    with _ledger(run) as ledger:
        found = {"present": run is not None, "readable": ledger.problem == ""}
        return found | {"problem": ledger.problem}


def overview(run: RunRef) -> dict[str, Any]:
    """Everything that the orchestrator's page shows."""
    with _ledger(run) as ledger:
        return {
            "run": _summary(run, ledger),
            "stats": _stats(ledger),
            "marketplace": _marketplace(ledger),
            "recent": _recent(ledger),
            "series": _series(ledger),
            "runs": ledger.rows(
                "runs", f"SELECT * FROM runs ORDER BY started_at DESC LIMIT {_MOST_RUNS}"
            ),
        }


def summary(run: RunRef) -> dict[str, Any]:
    """For a line of the home page."""
    with _ledger(run) as ledger:
        return _summary(run, ledger)


class _Ledger:
    """A connection that cannot write, or none."""

    def __init__(self, connection: sqlite3.Connection | None, problem: str = "") -> None:
        self._connection = connection
        self.problem = problem
        self._columns: dict[str, set[str]] = {}

    def columns(self, table: str) -> set[str]:
        """Of one of our own table names; empty if there is no such table."""
        if table not in self._columns:
            rows = self.query(f"PRAGMA table_info({table})")
            self._columns[table] = {row["name"] for row in rows}
        return self._columns[table]

    def rows(self, table: str, sql: str) -> list[dict[str, Any]]:
        return self.query(sql) if self.columns(table) else []

    def query(self, sql: str, values: tuple[object, ...] = ()) -> list[dict[str, Any]]:
        if self._connection is None:
            return []
        try:
            return [dict(row) for row in self._connection.execute(sql, values)]
        except sqlite3.Error as error:
            self.problem = str(error)
            return []


@contextlib.contextmanager
def _ledger(run: RunRef | None) -> Iterator[_Ledger]:
    if run is None:
        yield _Ledger(None)
        return
    try:
        connection = _connect(run.path)
    except sqlite3.Error as error:
        yield _Ledger(None, str(error))
        return
    with contextlib.closing(connection):
        yield _Ledger(connection)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=_WAIT_SECONDS
    )
    connection.row_factory = sqlite3.Row
    connection.execute("PRAGMA query_only = ON")
    return connection


def _stats(ledger: _Ledger) -> dict[str, Any]:
    columns = ledger.columns("attempts")
    cpu = "SUM(cpu_seconds)" if "cpu_seconds" in columns else "0"
    wasted = "SUM(CASE success WHEN 1 THEN 0 ELSE cpu_seconds END)" if "cpu_seconds" in columns else "0"
    cancelled = "SUM(status = 'cancelled')" if "status" in columns else "0"
    by_strategy = ledger.rows(
        "attempts",
        f"SELECT strategy, COUNT(*) AS attempts, SUM(success) AS successes, "  # noqa: S608
        f"{cancelled} AS cancelled, AVG(time_seconds) AS avg_time, {cpu} AS cpu_seconds, "
        f"{wasted} AS wasted_cpu_seconds FROM attempts GROUP BY strategy ORDER BY strategy",
    )
    for row in by_strategy:
        trials = row["attempts"] - row["cancelled"]
        row["success_rate"] = row["successes"] / trials if trials else 0.0
    arms = {
        row["strategy"]: row
        for row in ledger.rows("bandit", "SELECT * FROM bandit WHERE goal_class = ''")
    }
    goals = ledger.rows(
        "attempts",
        "SELECT COUNT(DISTINCT goal_hash) AS tried, "
        "COUNT(DISTINCT CASE success WHEN 1 THEN goal_hash END) AS solved FROM attempts",
    )
    cache = ledger.rows(
        "tactic_cache", "SELECT COUNT(*) AS entries, SUM(use_count) AS uses FROM tactic_cache"
    )
    found = goals[0] if goals else {"tried": 0, "solved": 0}
    return {
        "attempts": sum(row["attempts"] for row in by_strategy),
        "successes": sum(row["successes"] for row in by_strategy),
        "goals": {"tried": found["tried"], "solved": found["solved"]},
        "strategies": {
            row.pop("strategy"): {**row, "bandit": arms.get(name)}
            for row in by_strategy
            for name in [row["strategy"]]
        },
        "tactic_cache": {
            "entries": cache[0]["entries"] if cache else 0,
            "uses": (cache[0]["uses"] if cache else 0) or 0,
        },
        "problem": ledger.problem,
    }


def _marketplace(ledger: _Ledger) -> dict[str, Any]:
    counts = ledger.rows(
        "tickets", "SELECT status, COUNT(*) AS number FROM tickets GROUP BY status"
    )
    order = "created_at" if "created_at" in ledger.columns("tickets") else "rowid"
    latest = ledger.rows(
        "tickets", f"SELECT * FROM tickets ORDER BY {order} DESC LIMIT {_MOST_TICKETS}"  # noqa: S608
    )
    return {
        "tickets": latest,
        "by_status": {row["status"]: row["number"] for row in counts},
        "problem": ledger.problem,
    }


def _recent(ledger: _Ledger) -> list[dict[str, Any]]:
    rows = ledger.rows("attempts", f"SELECT * FROM attempts ORDER BY id DESC LIMIT {_RECENT}")
    for row in rows:
        for name in ("tactics", "metadata", "subgoals"):
            row[name] = _decoded(row.get(name))
    return rows


def _series(ledger: _Ledger) -> list[dict[str, Any]]:
    """By strategy, over the attempts in order: how many, how many succeeded, CPU wasted."""
    columns = ledger.columns("attempts")
    if not columns:
        return []
    wasted = "SUM(CASE success WHEN 1 THEN 0 ELSE cpu_seconds END)" if "cpu_seconds" in columns else "0"
    return ledger.query(
        f"WITH span AS (SELECT MIN(id) AS low, MAX(id) AS high FROM attempts) "  # noqa: S608
        f"SELECT strategy, (id - low) * {_POINTS} / (high - low + 1) AS part, "
        f"COUNT(*) AS attempts, SUM(success) AS successes, {wasted} AS wasted, "
        f"MAX(timestamp) AS until FROM attempts, span GROUP BY strategy, part ORDER BY part"
    )


def _summary(run: RunRef, ledger: _Ledger) -> dict[str, Any]:
    found = _stats(ledger)
    last = ledger.rows("attempts", "SELECT timestamp FROM attempts ORDER BY id DESC LIMIT 1")
    goals = found["goals"]
    return {
        "key": run.key,
        "kind": run.kind,
        "run_id": str(run.project.name),
        "created_at": last[0]["timestamp"] if last else None,
        "liveness": {
            "state": "damaged" if ledger.problem else "ledger",
            "detail": ledger.problem or "attempts of every bank and background run",
        },
        "progress": {"done": goals["solved"], "of": goals["tried"]},
        "attempts": found["attempts"],
        "eta_seconds": None,
        "problem": ledger.problem,
    }


def _decoded(text: object) -> object:
    if not isinstance(text, str) or not text:
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
