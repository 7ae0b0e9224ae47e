"""The rows of the ledger: attempts, lessons of searches, and cached tactics.

Functions that write take a connection inside a transaction, or return the SQL statement to run.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from treewright.kernel.clock import timestamp
from treewright.orchestrator.ledger.statistics import Query
from treewright.orchestrator.scheduling.bandit import ALPHA
from treewright.proving.learning import FADING, Lesson, select_lessons

if TYPE_CHECKING:
    from treewright.orchestrator.ledger.store import Ledger

Status = Literal["proved", "failed", "timeout", "error", "rejected", "cancelled", "unavailable"]
"""How an attempt ended.

`rejected`: the replay check refused the worker's claim. `error`: Lean ended, or the worker raised
an exception. `unavailable`: the attempt could not begin, because a part of the strategy was
missing."""

Change: TypeAlias = tuple[str, Sequence[object]]
"""An SQL statement and its values."""

_TURNSTILE = "⊢ "
_LESSON_COLUMNS = "goal_class, shape, tried, helped, seconds, prior"
_INSERT_ATTEMPT = """
INSERT INTO attempts (attempt_key, run_id, goal_id, goal_hash, goal_text, goal_class, strategy,
    success, status, time_seconds, cpu_seconds, budget, toolchain, imports, tactics, subgoals,
    error, metadata, timestamp, target_hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (attempt_key) DO NOTHING
"""


class StoredProof(msgspec.Struct, frozen=True):
    """A success in the file: a claim, until the replay check has accepted it again."""

    attempt: int
    goal_id: str
    tactics: tuple[str, ...]


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


# -- lessons ----------------------------------------------------------------------------------


def add_lessons(connection: sqlite3.Connection, lessons: Iterable[Lesson]) -> None:
    """Add newer lessons to the older ones, which fade."""
    connection.executemany(
        f"INSERT INTO lessons ({_LESSON_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6) "  # noqa: S608
        "ON CONFLICT (goal_class, shape) DO UPDATE SET "
        "tried = ?7 * tried + ?3, helped = ?7 * helped + ?4, "
        "seconds = ?7 * seconds + ?5, prior = ?7 * prior + ?6",
        [
            (x.goal_class, x.shape, x.tried, x.helped, x.seconds, x.prior, FADING**x.tried)
            for x in lessons
        ],
    )


def read_lessons(query: Callable[[str], Sequence[sqlite3.Row]]) -> tuple[Lesson, ...]:
    """Return the lessons for a new run, rounded so that a record of them is exact."""
    rows = query(f"SELECT {_LESSON_COLUMNS} FROM lessons")  # noqa: S608
    return select_lessons(
        Lesson(
            row["goal_class"],
            row["shape"],
            round(row["tried"], 4),
            round(row["helped"], 4),
            round(row["seconds"], 4),
            round(row["prior"], 6),
        )
        for row in rows
    )


# -- cached tactics ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The tactics that closed a goal, with their success rate and mean time."""

    goal_hash: str
    target_hash: str
    goal_text: str
    tactics: tuple[str, ...]
    success_rate: float
    avg_time: float


def store_tactics(entry: CacheEntry) -> Change:
    """Return the statement that replaces a goal's tactics and keeps their use count."""
    return (
        "INSERT INTO tactic_cache (goal_hash, goal_text, tactics, success_rate, avg_time, "
        "use_count, last_used, target_hash) VALUES (?, ?, ?, ?, ?, 0, ?, ?) "
        "ON CONFLICT (goal_hash) DO UPDATE SET tactics = excluded.tactics, "
        "success_rate = excluded.success_rate, avg_time = excluded.avg_time, "
        "last_used = excluded.last_used",
        (
            entry.goal_hash,
            entry.goal_text,
            json.dumps(entry.tactics, ensure_ascii=False),
            entry.success_rate,
            entry.avg_time,
            timestamp(),
            entry.target_hash,
        ),
    )


def count_tactics_use(goal_hash: str, *, success: bool, seconds: float) -> Change:
    """Return the statement that counts a use; rate and time are averages with the bandit's α."""
    return (
        f"UPDATE tactic_cache SET use_count = use_count + 1, last_used = ?, success_rate = "  # noqa: S608
        f"{1 - ALPHA} * success_rate + {ALPHA} * ?, avg_time = {1 - ALPHA} * avg_time + "
        f"{ALPHA} * ? WHERE goal_hash = ?",
        (timestamp(), int(success), seconds, goal_hash),
    )


def find_tactics(query: Query, wanted: str, *, in_any_context: bool) -> sqlite3.Row | None:
    """Return the row of the goal with this hash.

    With `in_any_context`, and if there is no such goal, return the most reliable row of a goal
    with this target in some context.
    """
    rows = query("SELECT * FROM tactic_cache WHERE goal_hash = ?", [wanted])
    if not rows and in_any_context:
        rows = query(
            "SELECT * FROM tactic_cache WHERE target_hash = ? "
            "ORDER BY success_rate DESC, goal_hash LIMIT 1",
            [wanted],
        )
    return rows[0] if rows else None


@dataclass(frozen=True, slots=True)
class CachedTactics:
    """A script that closed an equal goal, and its success rate."""

    tactic: str
    success_rate: float


class LedgerTacticCache:
    """The tactic cache of a ledger as a source for proof search."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def tactics_for(self, goal: str) -> Sequence[CachedTactics]:
        cached = self._ledger.get_cached_tactics(goal.removeprefix(_TURNSTILE))
        if cached is None or not cached["tactics"]:
            return ()
        return (CachedTactics("\n".join(cached["tactics"]), cached["success_rate"]),)
