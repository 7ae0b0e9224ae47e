"""The attempts of a ledger: one row, the sums over them, and reading them.

`ledger stats`, `bg`, the HTTP API, the dashboard and the bank's results use the same sums:

- A *trial* says something about a strategy and a goal: it was proved, failed, timed out or was
  rejected. An attempt that was cancelled, broke or could not begin is no trial.
- The success rate is successes per trial; the mean time is over trials. The bandit learns from
  the same trials, with moving averages.
- Wasted CPU time is the CPU time of cancelled attempts: another strategy was quicker.
- Attempts of stub strategies (profile 0) count in a ledger of stubs only.
- The declarations of a project are counted by their ids, other goals by their hashes: the hash of
  a declaration changes whenever an earlier `sorry` of its file is filled in.
"""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from treewright.kernel.clock import timestamp
from treewright.kernel.text import jsontext
from treewright.orchestrator.types import PROFILE_VARIABLE, PROJECT_CLASS
from treewright.proving.learning import Lesson

if TYPE_CHECKING:
    from treewright.orchestrator.ledger.ledger import Ledger

Status = Literal["proved", "failed", "timeout", "error", "rejected", "cancelled", "unavailable"]
"""How an attempt ended.

`rejected`: the replay check refused the worker's claim. `error`: Lean ended, or the worker raised
an exception. `unavailable`: the attempt could not begin, because a part of the strategy was
missing."""


TRIALS: frozenset[str] = frozenset({"proved", "failed", "timeout", "rejected"})
IS_TRIAL = f"status IN ({', '.join(repr(status) for status in sorted(TRIALS))})"
"""The SQL condition of a trial."""

STUB_TOOLCHAIN = "stub"
STUB_NOTICE = "ledger of stub strategies (profile 0): they prove nothing"
_STUB_PREFIX = "stubs-"
_GOAL_KEY = f"CASE goal_class WHEN '{PROJECT_CLASS}' THEN goal_id ELSE goal_hash END"
_JSON_COLUMNS = ("tactics", "subgoals", "metadata")
_INSERT_ATTEMPT = """
INSERT INTO attempts (attempt_key, run_id, goal_id, goal_hash, goal_text, goal_class, strategy,
    success, status, time_seconds, cpu_seconds, budget, toolchain, imports, tactics, subgoals,
    error, metadata, timestamp, target_hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (attempt_key) DO NOTHING
"""

Query = Callable[[str, Sequence[object]], Sequence[sqlite3.Row]]
"""Returns the rows of an SQL query with these values."""


class Attempt(msgspec.Struct, frozen=True):
    """One row of `attempts`. Recording a second attempt with the same `key` changes nothing."""

    key: str
    run_id: str
    goal_id: str
    goal_hash: str
    goal_text: str
    goal_class: str
    strategy: str
    status: Status
    time_seconds: float
    cpu_seconds: float
    budget: float
    toolchain: str
    imports: tuple[str, ...]
    tactics: tuple[str, ...] = ()
    subgoals: tuple[str, ...] = ()
    error: str | None = None
    metadata: dict[str, Any] = {}
    target_hash: str = ""
    lessons: tuple[Lesson, ...] = ()

    @property
    def success(self) -> bool:
        """Whether the replay check accepted the proof."""
        return self.status == "proved"


def add_attempt(connection: sqlite3.Connection, attempt: Attempt) -> bool:
    """Add a row; return False and change nothing if there is a row with this key."""
    row = (
        attempt.key,
        attempt.run_id,
        attempt.goal_id,
        attempt.goal_hash,
        attempt.goal_text,
        attempt.goal_class,
        attempt.strategy,
        int(attempt.success),
        attempt.status,
        attempt.time_seconds,
        attempt.cpu_seconds,
        attempt.budget,
        attempt.toolchain,
        " ".join(attempt.imports),
        json.dumps(attempt.tactics, ensure_ascii=False),
        json.dumps(attempt.subgoals, ensure_ascii=False),
        attempt.error,
        msgspec.json.encode(attempt.metadata).decode(),
        timestamp(),
        attempt.target_hash or attempt.goal_hash,
    )
    return connection.execute(_INSERT_ATTEMPT, row).rowcount == 1


# -- the ledger of stubs ----------------------------------------------------------------------


def stub_ledger_path(path: Path) -> Path:
    """Return the ledger for the stubs of profile 0 that belongs to a ledger."""
    return path if is_stub_ledger(path) else path.with_name(f"{_STUB_PREFIX}{path.name}")


def is_stub_ledger(path: Path) -> bool:
    """Return whether a ledger is for the stubs of profile 0, by its name."""
    return path.name.startswith(_STUB_PREFIX)


def shown_ledger_path(path: Path) -> Path:
    """Return the ledger to show for a path.

    It is the ledger for stubs if `ORCH_PROFILE` is 0 or there is no other one.
    """
    stub = stub_ledger_path(path)
    wants_stubs = os.environ.get(PROFILE_VARIABLE, "").strip() == "0"
    return stub if stub.is_file() and (wants_stubs or not path.is_file()) else path


@dataclass(frozen=True, slots=True)
class AttemptCounts:
    """Sums over the attempts of one ledger; `stubs` says that it is a ledger of stubs."""

    query: Query
    stubs: bool = False

    @property
    def condition(self) -> str:
        """The SQL condition of the attempts that count in this ledger."""
        return "1" if self.stubs else f"toolchain <> '{STUB_TOOLCHAIN}'"

    def by_strategy(self, where: str = "1", values: Sequence[object] = ()) -> dict[str, Any]:
        """Return the sums of each strategy over the attempts that an SQL condition selects."""
        rows = self.query(
            "SELECT strategy, count(*) AS attempts, sum(success) AS successes, "  # noqa: S608
            f"sum({IS_TRIAL}) AS trials, sum(status = 'cancelled') AS cancelled, "
            f"coalesce(avg(CASE WHEN {IS_TRIAL} THEN time_seconds END), 0.0) AS avg_time, "
            "sum(time_seconds) AS time_seconds, sum(cpu_seconds) AS cpu_seconds, "
            "sum(cpu_seconds * (status = 'cancelled')) AS wasted_cpu_seconds "
            f"FROM attempts WHERE {self.condition} AND ({where}) "
            "GROUP BY strategy ORDER BY strategy",
            values,
        )
        sums = {row["strategy"]: dict(row) for row in rows}
        for counts in sums.values():
            del counts["strategy"]
            trials = counts["trials"]
            counts["success_rate"] = counts["successes"] / trials if trials else 0.0
        return sums

    def goals(self) -> dict[str, int]:
        """Return how many goals were tried, and how many of them are solved."""
        (row,) = self.query(
            f"SELECT count(DISTINCT {_GOAL_KEY}) AS tried, "  # noqa: S608
            f"count(DISTINCT CASE success WHEN 1 THEN {_GOAL_KEY} END) AS solved "
            f"FROM attempts WHERE {self.condition}",
            (),
        )
        return dict(row)


def total(strategies: dict[str, Any], name: str) -> float:
    """Return the sum of one number over all strategies."""
    return sum(sums[name] for sums in strategies.values())


def collect_statistics(ledger: Ledger) -> dict[str, Any]:
    """Return the document of `ledger stats`."""
    strategies = ledger.counts.by_strategy()
    goals = ledger.counts.goals()
    (cached,) = ledger.query("SELECT COUNT(*) AS entries FROM tactic_cache")
    tried, solved = goals["tried"], goals["solved"]
    return {
        "stubs": ledger.counts.stubs,
        "goals": {"total": tried, "proved": solved, "open": tried - solved},
        "strategies": strategies,
        "cpu_seconds": total(strategies, "cpu_seconds"),
        "wasted_cpu_seconds": total(strategies, "wasted_cpu_seconds"),
        "cached_tactics": cached["entries"],
    }


def describe_goals(goals: dict[str, int]) -> str:
    """Return the line with which `ledger stats` and `bg` count goals."""
    return f"{goals['total']} goals: {goals['proved']} proved, {goals['open']} open"


def find_attempts(
    ledger: Ledger, *, limit: int, goal: str = "", strategy: str = "", status: str = ""
) -> list[dict[str, Any]]:
    """Return the latest attempts that match, newest first."""
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


class TextTarget(Protocol):
    """A file, or anything else that text can be written to."""

    def write(self, text: str, /) -> object: ...


def export_attempts(ledger: Ledger, kind: str, target: TextTarget) -> int:
    """Write every attempt as `jsonl` or `csv`, oldest first, and return how many there are."""
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
