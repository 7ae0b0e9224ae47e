"""Reading the ledger for people and programs: sums, the latest attempts, an export."""

from __future__ import annotations

import csv
import json
import sqlite3
from typing import Any, Protocol

from treewright.kernel import jsontext
from treewright.orchestrator.ledger import Ledger

_JSON_COLUMNS = ("tactics", "subgoals", "metadata")


def collect(ledger: Ledger) -> dict[str, Any]:
    """Sums over all attempts."""
    strategies = {
        row["strategy"]: {
            "attempts": row["attempts"],
            "successes": row["successes"],
            "cancelled": row["cancelled"],
            "success_rate": row["successes"] / row["tried"] if row["tried"] else 0.0,
            "avg_time": row["avg_time"] or 0.0,
        }
        for row in ledger.query(
            "SELECT strategy, COUNT(*) AS attempts, SUM(success) AS successes, "
            "SUM(status = 'cancelled') AS cancelled, "
            "SUM(status NOT IN ('cancelled', 'unavailable')) AS tried, "
            "AVG(CASE WHEN status NOT IN ('cancelled', 'unavailable') THEN time_seconds END) "
            "AS avg_time FROM attempts GROUP BY strategy ORDER BY strategy"
        )
    }
    (goals,) = ledger.query(
        "SELECT COUNT(*) AS total, COALESCE(SUM(done), 0) AS proved FROM "
        "(SELECT MAX(success) AS done FROM attempts GROUP BY goal_hash)"
    )
    (cpu,) = ledger.query(
        "SELECT COALESCE(SUM(cpu_seconds), 0) AS cpu, COALESCE(SUM(CASE status WHEN 'cancelled' "
        "THEN cpu_seconds END), 0) AS wasted FROM attempts"
    )
    (cached,) = ledger.query("SELECT COUNT(*) AS entries FROM tactic_cache")
    total, proved = goals["total"], goals["proved"]
    return {
        "goals": {"total": total, "proved": proved, "open": total - proved},
        "strategies": strategies,
        "cpu_seconds": cpu["cpu"],
        "wasted_cpu_seconds": cpu["wasted"],
        "cached_tactics": cached["entries"],
    }


def find_attempts(
    ledger: Ledger, *, limit: int, goal: str = "", strategy: str = "", status: str = ""
) -> list[dict[str, Any]]:
    """The latest attempts that match, newest first."""
    conditions, values = ["1"], []
    if goal:
        conditions.append("(goal_id = ? OR goal_hash = ?)")
        values += [goal, ledger.hash_goal(goal)]
    for column, wanted in (("strategy", strategy), ("status", status)):
        if wanted:
            conditions.append(f"{column} = ?")
            values.append(wanted)
    rows = ledger.query(
        f"SELECT * FROM attempts WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?",  # noqa: S608
        [*values, max(0, limit)],
    )
    return [_as_dict(row) for row in rows]


class Target(Protocol):
    """What can be written to."""

    def write(self, text: str, /) -> object: ...


def export_attempts(ledger: Ledger, kind: str, target: Target) -> int:
    """Writes every attempt, oldest first; returns how many."""
    count = 0
    writer = None
    for row in ledger.rows("SELECT * FROM attempts ORDER BY id"):
        count += 1
        if kind == "jsonl":
            target.write(json.dumps(_as_dict(row), ensure_ascii=False) + "\n")
            continue
        if writer is None:
            writer = csv.writer(target)
            writer.writerow(row.keys())
        writer.writerow(tuple(row))
    return count


def _as_dict(row: sqlite3.Row) -> dict[str, Any]:
    found = dict(row)
    for column in _JSON_COLUMNS:
        found[column] = jsontext.decode(found[column])
    return found
