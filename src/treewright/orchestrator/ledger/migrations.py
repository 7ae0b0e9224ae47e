"""The ledger's tables, version by version. A ledger knows its version by `user_version`.

Version 1 has the tables that the first orchestrators wrote: attempts and the tactic cache.
Version 2 adds what dedupe, resuming, accounting and a persistent bandit need. Version 3 marks what
stubs wrote, takes back what was learned from it, and adds the hash of a goal's text alone. Version
4 has the marketplace's tickets, which some older ledgers have too. Version 5 has what searches
teach, and what a run was given of it. A migration is never changed once it was released; a new one
is added below.
"""

from __future__ import annotations

import sqlite3

from treewright.kernel.database import Migration, script
from treewright.orchestrator.goals import normalise
from treewright.orchestrator.ledger.counting import IS_TRIAL, STUB_ERROR, STUB_TOOLCHAIN
from treewright.orchestrator.scheduling.bandit import Arm
from treewright.orchestrator.types import StrategyType

_VERSION_1 = """
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    goal_hash TEXT NOT NULL,
    goal_text TEXT NOT NULL,
    strategy TEXT NOT NULL,
    success INTEGER NOT NULL,
    time_seconds REAL NOT NULL DEFAULT 0,
    tactics TEXT NOT NULL DEFAULT '[]',
    error TEXT,
    timestamp TEXT NOT NULL
);
CREATE TABLE tactic_cache (
    goal_hash TEXT PRIMARY KEY,
    goal_text TEXT NOT NULL,
    tactics TEXT NOT NULL,
    success_rate REAL NOT NULL,
    avg_time REAL NOT NULL,
    use_count INTEGER NOT NULL DEFAULT 0,
    last_used TEXT
);
"""

_VERSION_2 = """
ALTER TABLE attempts ADD COLUMN attempt_key TEXT;
ALTER TABLE attempts ADD COLUMN run_id TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN goal_id TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN goal_class TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN status TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN cpu_seconds REAL NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN budget REAL NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN toolchain TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN imports TEXT NOT NULL DEFAULT '';
ALTER TABLE attempts ADD COLUMN subgoals TEXT NOT NULL DEFAULT '[]';
ALTER TABLE attempts ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
UPDATE attempts SET status = CASE success WHEN 1 THEN 'proved' ELSE 'failed' END;
CREATE UNIQUE INDEX attempts_key ON attempts (attempt_key) WHERE attempt_key IS NOT NULL;
CREATE INDEX attempts_goal ON attempts (goal_hash, strategy, toolchain, imports, budget);
CREATE INDEX attempts_run ON attempts (run_id, goal_id);
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
"""

_VERSION_4 = """
CREATE TABLE IF NOT EXISTS tickets (
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
)
"""

_VERSION_5 = """
CREATE TABLE IF NOT EXISTS lessons (
    goal_class TEXT NOT NULL,
    shape TEXT NOT NULL,
    tried REAL NOT NULL,
    helped REAL NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (goal_class, shape)
);
CREATE TABLE IF NOT EXISTS run_lessons (
    run_id TEXT PRIMARY KEY,
    lessons TEXT NOT NULL
);
"""

_VERSION_6 = "ALTER TABLE lessons ADD COLUMN prior REAL"


def _version_3(connection: sqlite3.Connection) -> None:
    _forget_stubs(connection)
    connection.create_function("hash_of_target", 1, _hash_of_target, deterministic=True)
    for table in ("attempts", "tactic_cache"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN target_hash TEXT NOT NULL DEFAULT ''")
        connection.execute(f"UPDATE {table} SET target_hash = hash_of_target(goal_text)")  # noqa: S608
        connection.execute(f"CREATE INDEX {table}_target ON {table} (target_hash)")


def _hash_of_target(shown: str) -> str:
    """The hash of a goal's text alone, from how the goal is shown."""
    return normalise.hash_text(shown.rpartition("⊢ ")[2])


def _forget_stubs(connection: sqlite3.Connection) -> None:
    """Marks attempts of stubs, and learns again from all others if there are any."""
    marked = connection.execute(
        "UPDATE attempts SET toolchain = ? WHERE error = ?", (STUB_TOOLCHAIN, STUB_ERROR)
    )
    if not marked.rowcount:
        return
    arms: dict[tuple[str, str], Arm] = {}
    trials = connection.execute(
        "SELECT goal_class, strategy, success, time_seconds FROM attempts "  # noqa: S608
        f"WHERE {IS_TRIAL} AND toolchain <> ? AND strategy <> ? AND attempt_key IS NOT NULL "
        "ORDER BY id",
        (STUB_TOOLCHAIN, StrategyType.CACHE),
    )
    for goal_class, strategy, success, seconds in trials:
        for key in {("", strategy), (goal_class, strategy)}:
            arms[key] = arms.get(key, Arm()).after(bool(success), seconds)
    connection.execute("DELETE FROM bandit")
    connection.executemany(
        "INSERT INTO bandit (goal_class, strategy, success_rate, seconds, trials, successes) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        [
            (*key, arm.success_rate, arm.seconds, arm.trials, arm.successes)
            for key, arm in arms.items()
        ],
    )


MIGRATIONS: tuple[Migration, ...] = (
    script(_VERSION_1),
    script(_VERSION_2),
    _version_3,
    script(_VERSION_4),
    script(_VERSION_5),
    script(_VERSION_6),
)

VERSION = len(MIGRATIONS)
