"""One attempt as the ledger keeps it: what is known of it, and its row of `attempts`."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, Literal

import msgspec

from treewright.kernel.clock import timestamp
from treewright.proving.learning import Lesson

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


def add(connection: sqlite3.Connection, attempt: Attempt) -> bool:
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
