"""One attempt as the ledger keeps it: what is known of it, and its row of `attempts`."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from treewright.kernel.clock import timestamp
from treewright.orchestrator.scheduling.bandit import ALPHA
from treewright.proving.learning import FADING, Lesson, worth_keeping

if TYPE_CHECKING:
    from treewright.orchestrator.ledger.store import Ledger


Status = Literal["proved", "failed", "timeout", "error", "rejected", "cancelled", "unavailable"]
"""`rejected`: the replay check refused what the worker claimed. `error`: something broke on the
way (Lean ended, an exception). `unavailable`: nothing was tried, because a part of the strategy
was missing."""


class StoredProof(msgspec.Struct, frozen=True):
    """A success as the file has it: a claim, until the replay check has seen it."""

    attempt: int
    goal_id: str
    tactics: tuple[str, ...]


class Attempt(msgspec.Struct, frozen=True):
    """One row of `attempts`. `key` makes recording it a second time a no-op."""

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


_INSERT = """
INSERT INTO attempts (attempt_key, run_id, goal_id, goal_hash, goal_text, goal_class, strategy,
    success, status, time_seconds, cpu_seconds, budget, toolchain, imports, tactics, subgoals,
    error, metadata, timestamp, target_hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (attempt_key) DO NOTHING
"""


def add_attempt(connection: sqlite3.Connection, attempt: Attempt) -> bool:
    """False if it was there already; then it is left as it is."""
    return connection.execute(_INSERT, _row(attempt)).rowcount == 1


def _row(attempt: Attempt) -> tuple[object, ...]:
    return (
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


_COLUMNS = "goal_class, shape, tried, helped, seconds, prior"


def add_lessons(connection: sqlite3.Connection, lessons: Iterable[Lesson]) -> None:
    """Adds newer lessons, within the transaction of the attempt they are from."""
    connection.executemany(
        f"INSERT INTO lessons ({_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6) "  # noqa: S608
        "ON CONFLICT (goal_class, shape) DO UPDATE SET "
        "tried = ?7 * tried + ?3, helped = ?7 * helped + ?4, "
        "seconds = ?7 * seconds + ?5, prior = ?7 * prior + ?6",
        [
            (x.goal_class, x.shape, x.tried, x.helped, x.seconds, x.prior, FADING**x.tried)
            for x in lessons
        ],
    )


def read_lessons(query: Callable[[str], Sequence[sqlite3.Row]]) -> tuple[Lesson, ...]:
    """Those worth giving to a run, rounded, so that a record of them is exact."""
    rows = query(f"SELECT {_COLUMNS} FROM lessons")  # noqa: S608
    return worth_keeping(
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


_TURNSTILE = "⊢ "
Change = tuple[str, Sequence[object]]
"""An SQL statement and its values."""
Query = Callable[[str, Sequence[object]], Sequence[sqlite3.Row]]


def store_tactics(
    goal_hash: str,
    target_hash: str,
    text: str,
    tactics: Sequence[str],
    success_rate: float,
    avg_time: float,
) -> Change:
    """The tactics of a goal, instead of those that were there; how often they were used stays."""
    as_json = json.dumps(list(tactics), ensure_ascii=False)
    return (
        "INSERT INTO tactic_cache (goal_hash, goal_text, tactics, success_rate, avg_time, "
        "use_count, last_used, target_hash) VALUES (?, ?, ?, ?, ?, 0, ?, ?) "
        "ON CONFLICT (goal_hash) DO UPDATE SET tactics = excluded.tactics, "
        "success_rate = excluded.success_rate, avg_time = excluded.avg_time, "
        "last_used = excluded.last_used",
        (goal_hash, text, as_json, success_rate, avg_time, timestamp(), target_hash),
    )


def count_tactics_use(goal_hash: str, *, success: bool, seconds: float) -> Change:
    """They were tried: their rate and time move by the same α as the bandit."""
    return (
        f"UPDATE tactic_cache SET use_count = use_count + 1, last_used = ?, success_rate = "  # noqa: S608
        f"{1 - ALPHA} * success_rate + {ALPHA} * ?, avg_time = {1 - ALPHA} * avg_time + "
        f"{ALPHA} * ? WHERE goal_hash = ?",
        (timestamp(), int(success), seconds, goal_hash),
    )


def find_tactics(query: Query, wanted: str, *, in_any_context: bool) -> sqlite3.Row | None:
    """Of a goal with this hash; else, if wanted, the most reliable of those with such a target."""
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
    """A script that closed an equal goal, and how often it does."""

    tactic: str
    success_rate: float


class LedgerTacticCache:
    """For a source of proof search. A goal without hypotheses is its target."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def tactics_for(self, goal: str) -> Sequence[CachedTactics]:
        cached = self._ledger.get_cached_tactics(goal.removeprefix(_TURNSTILE))
        if cached is None or not cached["tactics"]:
            return ()
        return (CachedTactics("\n".join(cached["tactics"]), cached["success_rate"]),)
