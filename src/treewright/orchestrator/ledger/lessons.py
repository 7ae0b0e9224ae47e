"""What searches teach, as the ledger keeps it: rows of `lessons`, in which older tries fade."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence

from treewright.proving.learning import FADING, Lesson, worth_keeping

_COLUMNS = "goal_class, shape, tried, helped, seconds, prior"


def add(connection: sqlite3.Connection, lessons: Iterable[Lesson]) -> None:
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


def known(query: Callable[[str], Sequence[sqlite3.Row]]) -> tuple[Lesson, ...]:
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
