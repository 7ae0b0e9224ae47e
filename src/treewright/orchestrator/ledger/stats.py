"""Reading the ledger for people and programs: sums, the latest attempts, an export."""

from __future__ import annotations

import csv
import json
import sqlite3
from typing import Any, Protocol

from treewright.kernel.text import jsontext
from treewright.orchestrator.ledger.counting import total
from treewright.orchestrator.ledger.store import Ledger

_JSON_COLUMNS = ("tactics", "subgoals", "metadata")


def collect(ledger: Ledger) -> dict[str, Any]:
    """Sums over all attempts that count."""
    strategies = ledger.counting.by_strategy()
    goals = ledger.counting.goals()
    (cached,) = ledger.query("SELECT COUNT(*) AS entries FROM tactic_cache")
    tried, solved = goals["tried"], goals["solved"]
    return {
        "goals": {"total": tried, "proved": solved, "open": tried - solved},
        "strategies": strategies,
        "cpu_seconds": total(strategies, "cpu_seconds"),
        "wasted_cpu_seconds": total(strategies, "wasted_cpu_seconds"),
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
