"""What counts, and how: trials, successes, wasted CPU, mean time. Everybody who sums asks here.

- A *trial* says something of a strategy and a goal: it was proved, failed, timed out or was
  rejected. What was cancelled, broke or could not begin says nothing.
- The success rate is successes per trial; the mean time is over trials. The bandit learns from
  the same trials, with moving averages.
- Wasted CPU time is that of cancelled attempts: somebody else was quicker.
- Attempts of stubs (profile 0) count in a ledger of stubs only.

The sums are made of SQL.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TRIALS: frozenset[str] = frozenset({"proved", "failed", "timeout", "rejected"})
IS_TRIAL = f"status IN ({', '.join(repr(status) for status in sorted(TRIALS))})"
"""A trial as an SQL condition."""

STUB_TOOLCHAIN = "stub"
_STUB_PREFIX = "stubs-"

Query = Callable[[str, Sequence[object]], Sequence[sqlite3.Row]]


def stub_ledger(path: Path) -> Path:
    """Where the stubs of profile 0 record: what they do must teach nobody anything."""
    return path if has_stubs(path) else path.with_name(f"{_STUB_PREFIX}{path.name}")


def has_stubs(path: Path) -> bool:
    """Whether a ledger is one of stubs."""
    return path.name.startswith(_STUB_PREFIX)


@dataclass(frozen=True, slots=True)
class Counting:
    """Sums over the attempts of one ledger."""

    query: Query
    stubs: bool = False

    @property
    def counted(self) -> str:
        """The SQL condition for attempts that count here."""
        return "1" if self.stubs else f"toolchain <> '{STUB_TOOLCHAIN}'"

    def by_strategy(self, where: str = "1", values: Sequence[object] = ()) -> dict[str, Any]:
        rows = self.query(
            "SELECT strategy, count(*) AS attempts, sum(success) AS successes, "  # noqa: S608
            f"sum({IS_TRIAL}) AS trials, sum(status = 'cancelled') AS cancelled, "
            f"coalesce(avg(CASE WHEN {IS_TRIAL} THEN time_seconds END), 0.0) AS avg_time, "
            "sum(time_seconds) AS time_seconds, sum(cpu_seconds) AS cpu_seconds, "
            "sum(cpu_seconds * (status = 'cancelled')) AS wasted_cpu_seconds "
            f"FROM attempts WHERE {self.counted} AND ({where}) "
            "GROUP BY strategy ORDER BY strategy",
            values,
        )
        return {row["strategy"]: _with_rate(dict(row)) for row in rows}

    def goals(self) -> dict[str, int]:
        """Goals that were attempted, and those of them that are proved."""
        (row,) = self.query(
            "SELECT count(DISTINCT goal_hash) AS tried, "  # noqa: S608
            "count(DISTINCT CASE success WHEN 1 THEN goal_hash END) AS solved "
            f"FROM attempts WHERE {self.counted}",
            (),
        )
        return dict(row)


def _with_rate(sums: dict[str, Any]) -> dict[str, Any]:
    del sums["strategy"]
    trials = sums["trials"]
    return sums | {"success_rate": sums["successes"] / trials if trials else 0.0}


def total(strategies: dict[str, Any], what: str) -> float:
    """A sum over all strategies."""
    return sum(one[what] for one in strategies.values())
