"""Opening the ledger's file: new, locked, damaged, or not a ledger at all."""

from __future__ import annotations

import sqlite3
from contextlib import AbstractContextManager
from pathlib import Path

from treewright.kernel.storage import database
from treewright.kernel.storage.database import DEFAULT_WAIT_SECONDS, Schema
from treewright.kernel.storage.run_directory import STATE_DIR, hide_from_git
from treewright.orchestrator.ledger.tables import TABLES

LEDGER = "ledger.db"
DEFAULT_PATH = Path(STATE_DIR) / LEDGER
"""Below the project whose goals it is about."""
SCHEMA = Schema("ledger", 0x54574C47, TABLES)  # "TWLG"


def open_ledger(path: Path, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> sqlite3.Connection:
    """A connection to a ledger, made if there is none; every commit survives a power cut."""
    if path.parent.name == STATE_DIR and not path.exists():
        hide_from_git(path.parent)  # `git add --all` in the project must not take it along
    return database.open_database(path, SCHEMA, wait_seconds)


def errors_for_people(
    path: Path, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> AbstractContextManager[None]:
    """What SQLite says of a ledger, as one line that says what to do."""
    return database.errors_for_people(path, SCHEMA.what, wait_seconds)
