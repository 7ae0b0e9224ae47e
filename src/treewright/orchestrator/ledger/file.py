"""Opening the ledger's file: new, of an older version, locked, damaged, or not a ledger at all."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path

from treewright.kernel import database
from treewright.kernel.database import DEFAULT_WAIT_SECONDS, Schema
from treewright.kernel.rundir import STATE_DIR, hide_from_git
from treewright.orchestrator.ledger import migrations

LEDGER = "ledger.db"
DEFAULT_PATH = Path(STATE_DIR) / LEDGER
"""Below the project whose goals it is about."""
APPLICATION_ID = 0x54574C47  # "TWLG"
_WHAT = "ledger"


def schema() -> Schema:
    return Schema(_WHAT, APPLICATION_ID, migrations.MIGRATIONS, _unmarked)


def open_ledger(path: Path, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> sqlite3.Connection:
    """A connection to an up-to-date ledger; every commit survives a power cut."""
    if path.parent.name == STATE_DIR and not path.exists():
        hide_from_git(path.parent)  # `git add --all` in the project must not take it along
    return database.open_database(path, schema(), wait_seconds)


def errors_for_people(
    path: Path, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> AbstractContextManager[None]:
    """What SQLite says of a ledger, as one line that says what to do."""
    return database.errors_for_people(path, _WHAT, wait_seconds)


def _unmarked(connection: sqlite3.Connection) -> int | None:
    """Ledgers and tables of tickets that were written before files carried a mark."""
    if not database.tables(connection) - {"tickets"}:
        return 0
    columns = {row[1] for row in connection.execute("PRAGMA table_info(attempts)")}
    return 1 if {"goal_hash", "goal_text", "strategy", "success"} <= columns else None
