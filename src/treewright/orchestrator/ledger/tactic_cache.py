"""What closed which goal: rows of `tactic_cache`, and the same as proof search sees it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treewright.kernel.clock import timestamp
from treewright.orchestrator.scheduling.bandit import ALPHA

if TYPE_CHECKING:
    from treewright.orchestrator.ledger.store import Ledger

_TURNSTILE = "⊢ "
Change = tuple[str, Sequence[object]]
"""An SQL statement and its values."""
Query = Callable[[str, Sequence[object]], Sequence[sqlite3.Row]]


def keeping(
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


def using(goal_hash: str, *, success: bool, seconds: float) -> Change:
    """They were tried: their rate and time move by the same α as the bandit."""
    return (
        f"UPDATE tactic_cache SET use_count = use_count + 1, last_used = ?, success_rate = "  # noqa: S608
        f"{1 - ALPHA} * success_rate + {ALPHA} * ?, avg_time = {1 - ALPHA} * avg_time + "
        f"{ALPHA} * ? WHERE goal_hash = ?",
        (timestamp(), int(success), seconds, goal_hash),
    )


def find(query: Query, wanted: str, *, in_any_context: bool) -> sqlite3.Row | None:
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
class Remembered:
    """A script that closed an equal goal, and how often it does."""

    tactic: str
    success_rate: float


class LedgerTactics:
    """For a source of proof search. A goal without hypotheses is its target."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def tactics_for(self, goal: str) -> Sequence[Remembered]:
        cached = self._ledger.get_cached_tactics(goal.removeprefix(_TURNSTILE))
        if cached is None or not cached["tactics"]:
            return ()
        return (Remembered("\n".join(cached["tactics"]), cached["success_rate"]),)
