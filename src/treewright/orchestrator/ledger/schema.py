"""The ledger's file: its path, its tables (described in docs/ledger.md), and opening it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from treewright.kernel.storage import database
from treewright.kernel.storage.database import DEFAULT_WAIT_SECONDS, Schema
from treewright.kernel.storage.run_directory import STATE_DIR, hide_from_git

TABLES = """
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    goal_hash TEXT NOT NULL,
    goal_text TEXT NOT NULL,
    strategy TEXT NOT NULL,
    success INTEGER NOT NULL,
    time_seconds REAL NOT NULL,
    tactics TEXT NOT NULL,
    error TEXT,
    timestamp TEXT NOT NULL,
    attempt_key TEXT NOT NULL UNIQUE,
    run_id TEXT NOT NULL,
    goal_id TEXT NOT NULL,
    goal_class TEXT NOT NULL,
    status TEXT NOT NULL,
    cpu_seconds REAL NOT NULL,
    budget REAL NOT NULL,
    toolchain TEXT NOT NULL,
    imports TEXT NOT NULL,
    subgoals TEXT NOT NULL,
    metadata TEXT NOT NULL,
    target_hash TEXT NOT NULL
);
CREATE INDEX attempts_goal ON attempts (goal_hash, strategy, toolchain, imports, budget);
CREATE INDEX attempts_run ON attempts (run_id, goal_id);
CREATE INDEX attempts_target ON attempts (target_hash);
CREATE TABLE tactic_cache (
    goal_hash TEXT PRIMARY KEY,
    goal_text TEXT NOT NULL,
    tactics TEXT NOT NULL,
    success_rate REAL NOT NULL,
    avg_time REAL NOT NULL,
    use_count INTEGER NOT NULL,
    last_used TEXT NOT NULL,
    target_hash TEXT NOT NULL
);
CREATE INDEX tactic_cache_target ON tactic_cache (target_hash);
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    config TEXT NOT NULL,
    started_at TEXT NOT NULL,
    finished_at TEXT
);
CREATE TABLE bandit (
    goal_class TEXT NOT NULL,
    strategy TEXT NOT NULL,
    success_rate REAL NOT NULL,
    seconds REAL NOT NULL,
    trials INTEGER NOT NULL,
    successes INTEGER NOT NULL,
    PRIMARY KEY (goal_class, strategy)
);
CREATE TABLE tickets (
    ticket_id TEXT PRIMARY KEY,
    goal TEXT NOT NULL,
    context TEXT NOT NULL,
    suggested_name TEXT NOT NULL,
    constraints TEXT NOT NULL,
    imports TEXT NOT NULL,
    preamble TEXT NOT NULL,
    hints TEXT NOT NULL,
    priority REAL NOT NULL,
    status TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requests INTEGER NOT NULL DEFAULT 1,
    claimed_by TEXT,
    claim_expires REAL,
    completed_proof TEXT,
    completed_by TEXT,
    last_error TEXT,
    created REAL NOT NULL,
    updated REAL NOT NULL
);
CREATE TABLE lessons (
    goal_class TEXT NOT NULL,
    shape TEXT NOT NULL,
    tried REAL NOT NULL,
    helped REAL NOT NULL,
    seconds REAL NOT NULL,
    prior REAL NOT NULL,
    PRIMARY KEY (goal_class, shape)
);
CREATE TABLE run_lessons (
    run_id TEXT PRIMARY KEY,
    lessons TEXT NOT NULL
)
"""


LEDGER = "ledger.db"
DEFAULT_PATH = Path(STATE_DIR) / LEDGER
"""The path of the ledger in a project."""
SCHEMA = Schema("ledger", 0x54574C47, TABLES)  # "TWLG"
_READER_WAIT_SECONDS = 5.0


def open_ledger(path: Path, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> sqlite3.Connection:
    """Open a ledger, or create it; every commit survives a power cut."""
    if path.parent.name == STATE_DIR and not path.exists():
        hide_from_git(path.parent)  # keeps `git add --all` in the project from adding the ledger
    return database.open_database(path, SCHEMA, wait_seconds)


@contextlib.contextmanager
def open_for_reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Open a ledger for reading, with rows by name; yield None if there is no ledger yet."""
    if not path.is_file():
        yield None
        return
    with readable_errors(path, _READER_WAIT_SECONDS):
        connection = database.open_read_only(path, SCHEMA, _READER_WAIT_SECONDS)
        try:
            yield None if SCHEMA.is_new(connection, path) else connection
        finally:
            connection.close()


def readable_errors(
    path: Path, wait_seconds: float = DEFAULT_WAIT_SECONDS
) -> AbstractContextManager[None]:
    """Turn SQLite's errors about a ledger into one line that says what to do."""
    return database.readable_errors(path, SCHEMA.what, wait_seconds)
