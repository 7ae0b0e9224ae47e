"""The orchestrator's ledger for the pages and for `/api/stats` and its siblings. Read-only.

The ledger's tables are a published format; tables and columns that an older ledger does
not have are taken as empty. What a scheduler keeps to itself (who holds a slot just now) is
not in the ledger and not shown.
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
from treewright.dashboard import strategy_series
from treewright.dashboard.roots import RunRef
from treewright.kernel.clock import timestamp
from treewright.orchestrator.throttle import machine_load

Document = dict[str, Any]

_WAIT_SECONDS = 2.0
_RECENT = 40
_MOST_TICKETS = 200
_MOST_RUNS = 20
_MOST_MINUTES = 12


def stats(run: RunRef | None) -> Document:
    """`GET /api/stats`: totals over the ledger, and by strategy."""
    with _ledger(run) as ledger:
        return _stats(ledger)


def marketplace(run: RunRef | None) -> Document:
    """`GET /api/marketplace`: tickets by status, the most urgent first."""
    with _ledger(run) as ledger:
        return _marketplace(ledger)


def health(run: RunRef | None) -> Document:
    """`GET /api/health`: `status` is `ok`, `absent` (no ledger yet) or `error`."""
    with _ledger(run) as ledger:
        version = ledger.query("PRAGMA user_version")
        status = "absent" if run is None else "error" if ledger.problem else "ok"
        return {
            "status": status,
            "detail": ledger.problem,
            "treewright": treewright.__version__,
            "ledger": str(run.path) if run is not None else None,
            "ledger_version": version[0]["user_version"] if version else None,
            "time": timestamp(),
        }


def overview(run: RunRef) -> Document:
    """Everything that the orchestrator's page shows."""
    with _ledger(run) as ledger:
        found = _stats(ledger)
        scores = strategy_series.scores(ledger.rows("bandit", "SELECT * FROM bandit"))
        for name, one in found["strategies"].items():
            one |= scores.get(name, {})
        return {
            "run": _summary(run, ledger),
            "stats": found,
            "marketplace": _marketplace(ledger),
            "recent": _recent(ledger, _RECENT),
            "series": _series(ledger),
            "runs": found["runs"],
            "minutes": _minutes(ledger),
            "machine_load": round(machine_load(), 2),
        }


def summary(run: RunRef) -> Document:
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

    def rows(self, table: str, sql: str, values: tuple[object, ...] = ()) -> list[Document]:
        return self.query(sql, values) if self.columns(table) else []

    def query(self, sql: str, values: tuple[object, ...] = ()) -> list[Document]:
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
    return connection


def _stats(ledger: _Ledger) -> Document:
    columns = ledger.columns("attempts")
    cpu = "coalesce(sum(cpu_seconds), 0)" if "cpu_seconds" in columns else "0"
    cancelled = "status = 'cancelled'" if "status" in columns else "0"
    wasted = f"coalesce(sum(cpu_seconds * ({cancelled})), 0)" if "status" in columns else "0"
    by_strategy = ledger.rows(
        "attempts",
        f"SELECT strategy, count(*) AS attempts, sum(success) AS successes, "  # noqa: S608
        f"sum({cancelled}) AS cancelled, avg(time_seconds) AS avg_time, "
        f"sum(time_seconds) AS time_seconds, {cpu} AS cpu_seconds, {wasted} AS wasted_cpu_seconds "
        f"FROM attempts GROUP BY strategy ORDER BY strategy",
    )
    for row in by_strategy:
        row["success_rate"] = row["successes"] / max(1, row["attempts"] - row["cancelled"])
    goals = ledger.rows(
        "attempts",
        "SELECT count(DISTINCT goal_hash) AS goals, count(DISTINCT CASE success WHEN 1 THEN "
        "goal_hash END) AS goals_solved FROM attempts",
    )
    cache = ledger.rows(
        "tactic_cache",
        "SELECT count(*) AS entries, coalesce(sum(use_count), 0) AS uses FROM tactic_cache",
    )
    return {
        "attempts": sum(row["attempts"] for row in by_strategy),
        "successes": sum(row["successes"] for row in by_strategy),
        **(goals[0] if goals else {"goals": 0, "goals_solved": 0}),
        "time_seconds": sum(row["time_seconds"] for row in by_strategy),
        "cpu_seconds": sum(row["cpu_seconds"] for row in by_strategy),
        "cpu_seconds_cancelled": sum(row["wasted_cpu_seconds"] for row in by_strategy),
        "strategies": {row["strategy"]: row for row in by_strategy},
        "recent": _recent(ledger, _RECENT // 2),
        "tactic_cache": cache[0] if cache else {"entries": 0, "uses": 0},
        "runs": _runs(ledger),
        "problem": ledger.problem,
    }


def _runs(ledger: _Ledger) -> list[Document]:
    rows = ledger.rows("runs", "SELECT * FROM runs ORDER BY started_at DESC LIMIT ?", (_MOST_RUNS,))
    return [row | {"config": _decoded(row["config"])} for row in rows]


def _marketplace(ledger: _Ledger) -> Document:
    """A claim whose time is over counts as open, as it does for those who want it."""
    status = (
        "CASE WHEN status = 'claimed' AND claim_expires <= ? THEN 'open' ELSE status END"
        if "claim_expires" in ledger.columns("tickets")
        else "coalesce(status, ?)"
    )
    now = time.time()
    counted = ledger.rows(
        "tickets",
        f"SELECT {status} AS status, count(*) AS number FROM tickets GROUP BY 1",  # noqa: S608
        (now,),
    )
    counts = {"open": 0, "claimed": 0, "completed": 0} | {r["status"]: r["number"] for r in counted}
    shown = ledger.rows(
        "tickets",
        f"SELECT *, {status} AS status FROM tickets ORDER BY priority DESC LIMIT ?",  # noqa: S608
        (now, _MOST_TICKETS),
    )
    return {"total": sum(counts.values()), **counts, "tickets": shown, "problem": ledger.problem}


def _recent(ledger: _Ledger, most: int) -> list[Document]:
    rows = ledger.rows("attempts", "SELECT * FROM attempts ORDER BY id DESC LIMIT ?", (most,))
    for row in rows:
        for name in ("tactics", "metadata", "subgoals"):
            row[name] = _decoded(row.get(name))
        row.setdefault("status", "proved" if row["success"] else "failed")
    return rows


def _series(ledger: _Ledger) -> list[Document]:
    columns = ledger.columns("attempts")
    cpu = "cpu_seconds" if "cpu_seconds" in columns else "0 AS cpu_seconds"
    status = "status" if "status" in columns else "'' AS status"
    return strategy_series.over_time(
        ledger.rows(
            "attempts",
            f"SELECT strategy, success, time_seconds, {cpu}, {status} FROM "  # noqa: S608
            "(SELECT * FROM attempts ORDER BY id DESC LIMIT ?) ORDER BY id",
            (strategy_series.MOST_ATTEMPTS,),
        )
    )


def _minutes(ledger: _Ledger) -> list[Document]:
    """What was under way in the last minutes that had attempts."""
    cpu = "sum(cpu_seconds)" if "cpu_seconds" in ledger.columns("attempts") else "0"
    return ledger.rows(
        "attempts",
        "SELECT substr(timestamp, 1, 16) AS minute, count(*) AS attempts, "  # noqa: S608
        f"sum(time_seconds) / 60 AS at_once, {cpu} AS cpu_seconds FROM attempts "
        "GROUP BY minute ORDER BY minute DESC LIMIT ?",
        (_MOST_MINUTES,),
    )


def _summary(run: RunRef, ledger: _Ledger) -> Document:
    found = _stats(ledger)
    last = found["recent"][0]["timestamp"] if found["recent"] else None
    open_runs = sum(1 for one in found["runs"] if one.get("finished_at") is None)
    detail = f"runs not finished: {open_runs}" if open_runs else "attempts of every run that used it"
    return {
        "key": run.key,
        "kind": run.kind,
        "run_id": run.project.name,
        "created_at": last,
        "liveness": {
            "state": "damaged" if ledger.problem else "ledger",
            "detail": ledger.problem or detail,
        },
        "progress": {"done": found["goals_solved"], "of": found["goals"]},
        "attempts": found["attempts"],
        "spent": {"seconds": found["time_seconds"], "cost_usd": 0.0,
                  "prompt_tokens": 0, "completion_tokens": 0},
        "eta_seconds": None,
        "problem": ledger.problem,
    }  # fmt: skip


def _decoded(text: object) -> object:
    """JSON in a column; what is not JSON stays as it is."""
    if not isinstance(text, str) or not text:
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
