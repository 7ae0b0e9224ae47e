"""The ledger: every attempt, the statistics of each strategy, and the tactics that closed goals.

The ledger is one SQLite file in WAL mode. A commit is on disk before the program acts on it.
Several processes and threads may share the file. docs/ledger.md describes the tables for other
programs that read them.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec

from treewright.kernel.clock import timestamp
from treewright.kernel.errors import require_several
from treewright.kernel.storage import database
from treewright.kernel.text import jsontext
from treewright.orchestrator.bandit import ALPHA, PRIOR_SUCCESS, Arm
from treewright.orchestrator.goals import normal_form
from treewright.orchestrator.ledger.attempts import (
    IS_TRIAL,
    STUB_TOOLCHAIN,
    TRIALS,
    Attempt,
    AttemptCounts,
    add_attempt,
    is_stub_ledger,
)
from treewright.orchestrator.ledger.schema import (
    DEFAULT_PATH,
    DEFAULT_WAIT_SECONDS,
    SCHEMA,
    open_ledger,
    readable_errors,
)
from treewright.orchestrator.types import Goal, StrategyType
from treewright.proving.learning import FADING, Lesson, select_lessons

_TURNSTILE = "⊢ "
_LEARN = f"""
INSERT INTO bandit (goal_class, strategy, success_rate, seconds, trials, successes)
VALUES (?1, ?2, {1 - ALPHA} * {PRIOR_SUCCESS} + {ALPHA} * ?3, ?4, 1, ?3)
ON CONFLICT (goal_class, strategy) DO UPDATE SET
    success_rate = {1 - ALPHA} * success_rate + {ALPHA} * ?3,
    seconds = {1 - ALPHA} * seconds + {ALPHA} * ?4,
    trials = trials + 1,
    successes = successes + ?3
"""  # noqa: S608 - the numbers are constants of the bandit


_LESSON_COLUMNS = "goal_class, shape, tried, helped, seconds, prior"
_ADD_LESSON = f"""
INSERT INTO lessons ({_LESSON_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (goal_class, shape) DO UPDATE SET
    tried = ?7 * tried + ?3,
    helped = ?7 * helped + ?4,
    seconds = ?7 * seconds + ?5,
    prior = ?7 * prior + ?6
"""  # noqa: S608 - our own text
_CACHE_TACTICS = """
INSERT INTO tactic_cache (goal_hash, target_hash, goal_text, tactics, success_rate, avg_time,
    use_count, last_used)
VALUES (?, ?, ?, ?, ?, ?, 0, ?)
ON CONFLICT (goal_hash) DO UPDATE SET tactics = excluded.tactics,
    success_rate = excluded.success_rate, avg_time = excluded.avg_time,
    last_used = excluded.last_used
"""
_COUNT_CACHE_USE = f"""
UPDATE tactic_cache SET use_count = use_count + 1, last_used = ?1,
    success_rate = {1 - ALPHA} * success_rate + {ALPHA} * ?2,
    avg_time = {1 - ALPHA} * avg_time + {ALPHA} * ?3
WHERE goal_hash = ?4
"""  # noqa: S608 - the numbers are constants of the bandit


class StoredProof(msgspec.Struct, frozen=True):
    """A success in the file: a claim, until the replay check has accepted it again."""

    attempt: int
    goal_id: str
    tactics: tuple[str, ...]


class Ledger:
    """An open ledger: the SQLite file at `path`, which is created if it does not exist.

    Raises:
        StorageError: The file is damaged, has another version, or is not a ledger.
        LockActive: Another process held the file for `wait_seconds`.
    """

    def __init__(
        self, path: Path | str = DEFAULT_PATH, *, wait_seconds: float = DEFAULT_WAIT_SECONDS
    ) -> None:
        self.path = Path(path)
        self._wait = wait_seconds
        self._lock = threading.RLock()
        self._connection = open_ledger(self.path, wait_seconds)
        self.counts = AttemptCounts(self.query, stubs=is_stub_ledger(self.path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; the ledger cannot be used any more."""
        with self._lock:
            self._connection.close()

    # -- goals ----------------------------------------------------------------------------

    @staticmethod
    def hash_goal(goal: Goal | str) -> str:
        """Return the hash of a goal's normal form; a text means a goal without context."""
        return (
            normal_form.hash_goal(goal) if isinstance(goal, Goal) else normal_form.hash_text(goal)
        )

    def check_duplicate(
        self,
        goal: Goal | str,
        strategy: str,
        *,
        toolchain: str | None = None,
        imports: Sequence[str] | None = None,
        budget: float | None = None,
    ) -> bool:
        """Return whether the ledger has a trial of this strategy at this goal.

        Attempts that were cancelled or broke are no trials and never count.

        Args:
            goal: A goal; or a text, which means every goal with this text in any context.
            strategy: The name of the strategy.
            toolchain: Count only trials with this toolchain.
            imports: Count only trials with these imports.
            budget: Count only trials that failed with at least this many seconds, so that another
                try with this budget would be useless.
        """
        require_several(imports=imports)
        which = "goal_hash" if isinstance(goal, Goal) else "target_hash"
        conditions = [f"{which} = ?", "strategy = ?", IS_TRIAL, self.counts.condition]
        values: list[object] = [self.hash_goal(goal), str(strategy)]
        if toolchain is not None:
            conditions.append("toolchain = ?")
            values.append(toolchain)
        if imports is not None:
            conditions.append("imports = ?")
            values.append(" ".join(imports))
        if budget is not None:
            conditions.append("success = 0 AND budget >= ?")
            values.append(budget)
        query = f"SELECT 1 FROM attempts WHERE {' AND '.join(conditions)} LIMIT 1"  # noqa: S608
        return bool(self.query(query, values))

    def frontier(self) -> list[tuple[str, str]]:
        """Return the hash and text of every goal that was tried and not proved."""
        rows = self.query(
            "SELECT DISTINCT goal_hash, goal_text FROM attempts WHERE success = 0 "  # noqa: S608
            f"AND {self.counts.condition} "
            "AND goal_hash NOT IN (SELECT goal_hash FROM attempts WHERE success = 1)"
        )
        return [(row["goal_hash"], row["goal_text"]) for row in rows]

    # -- attempts -------------------------------------------------------------------------

    def record(self, attempts: Iterable[Attempt]) -> None:
        """Write attempts, statistics, lessons and cached tactics in one durable transaction."""
        errors = readable_errors(self.path, self._wait)
        with self._lock, errors, database.transaction(self._connection):
            for attempt in attempts:
                if not add_attempt(self._connection, attempt):
                    continue
                self._learn(attempt)
                # Newer lessons are added to the older ones, which fade.
                self._connection.executemany(
                    _ADD_LESSON,
                    [
                        (x.goal_class, x.shape, x.tried, x.helped, x.seconds, x.prior,
                         FADING**x.tried)
                        for x in attempt.lessons
                    ],
                )  # fmt: skip
                if attempt.success and attempt.tactics and attempt.strategy != StrategyType.CACHE:
                    hashes = attempt.goal_hash, attempt.target_hash or attempt.goal_hash
                    self._cache_tactics(
                        hashes, attempt.goal_text, attempt.tactics, 1.0, attempt.time_seconds
                    )

    def _learn(self, attempt: Attempt) -> None:
        """Update the bandit's averages with a trial; stubs count only in a ledger of stubs."""
        stub = attempt.toolchain == STUB_TOOLCHAIN and not self.counts.stubs
        if attempt.status not in TRIALS or attempt.strategy == StrategyType.CACHE or stub:
            return
        for goal_class in {"", attempt.goal_class}:
            self._connection.execute(
                _LEARN,
                (goal_class, attempt.strategy, int(attempt.success), attempt.time_seconds),
            )

    def arms(self) -> dict[tuple[str, str], Arm]:
        """Return the averages of each strategy in each class of goals; `""` is all goals.

        Strategies that are not installed here, such as those of a removed plug-in, are included.
        """
        return {
            (row["goal_class"], row["strategy"]): Arm(
                row["success_rate"], row["seconds"], row["trials"], row["successes"]
            )
            for row in self.query("SELECT * FROM bandit")
        }

    def lessons(self) -> tuple[Lesson, ...]:
        """Return the lessons of all searches so far."""
        # Rounded, so that the record of a run's lessons is exact.
        return select_lessons(
            Lesson(
                row["goal_class"],
                row["shape"],
                round(row["tried"], 4),
                round(row["helped"], 4),
                round(row["seconds"], 4),
                round(row["prior"], 6),
            )
            for row in self.query(f"SELECT {_LESSON_COLUMNS} FROM lessons")  # noqa: S608
        )

    def lessons_of_run(self, run_id: str) -> tuple[Lesson, ...]:
        """Return the lessons that a run uses from its start to its end.

        The first call for a run of the table `runs` records the lessons so far, so that the run has
        the same lessons when it is continued. A run without a row there gets the lessons so far.
        """
        written = self._written_lessons(run_id)
        if written is not None:
            return written
        given = self.lessons()
        if self.query("SELECT 1 FROM runs WHERE run_id = ?", [run_id]):
            text = msgspec.json.encode(given).decode()
            self._write("INSERT OR IGNORE INTO run_lessons VALUES (?, ?)", [run_id, text])
            written = self._written_lessons(run_id)  # another process may have written first
        return given if written is None else written

    def _written_lessons(self, run_id: str) -> tuple[Lesson, ...] | None:
        rows = self.query("SELECT lessons FROM run_lessons WHERE run_id = ?", [run_id])
        if not rows:
            return None
        with readable_errors(self.path):
            return jsontext.decode(rows[0]["lessons"], tuple[Lesson, ...])

    # -- the tactic cache -----------------------------------------------------------------

    def update_tactic_cache(
        self, goal: Goal | str, *, tactics: Sequence[str], success_rate: float, avg_time: float
    ) -> None:
        """Store the tactics that close a goal, with their success rate and mean time."""
        require_several(tactics=tactics)
        text, target = (goal.shown, goal.text) if isinstance(goal, Goal) else (goal, goal)
        hashes = self.hash_goal(goal), self.hash_goal(target)
        self._cache_tactics(hashes, text, tactics, success_rate, avg_time)

    def _cache_tactics(
        self,
        hashes: tuple[str, str],
        text: str,
        tactics: Sequence[str],
        success_rate: float,
        avg_time: float,
    ) -> None:
        """Replace a goal's tactics and keep their use count; `hashes`: of the goal, its target."""
        script = json.dumps(tactics, ensure_ascii=False)
        row = (*hashes, text, script, success_rate, avg_time, timestamp())
        self._write(_CACHE_TACTICS, row)

    def get_cached_tactics(self, goal: Goal | str) -> dict[str, Any] | None:
        """Return `tactics`, `success_rate`, `avg_time` and `use_count` for an equal goal, or None.

        For a text without an entry, return the most reliable entry of a goal with this text in
        some context.
        """
        wanted = self.hash_goal(goal)
        rows = self.query("SELECT * FROM tactic_cache WHERE goal_hash = ?", [wanted])
        if not rows and not isinstance(goal, Goal):
            rows = self.query(
                "SELECT * FROM tactic_cache WHERE target_hash = ? "
                "ORDER BY success_rate DESC, goal_hash LIMIT 1",
                [wanted],
            )
        return {**dict(rows[0]), "tactics": self._tactics(rows[0])} if rows else None

    def note_cache_use(self, goal: Goal | str, *, success: bool, seconds: float) -> None:
        """Count a use of the cached tactics; rate and time are averages with the bandit's α."""
        values = [timestamp(), int(success), seconds, self.hash_goal(goal)]
        self._write(_COUNT_CACHE_USE, values)

    # -- proofs of an earlier process ----------------------------------------------------

    def stored_proofs(self, run_id: str) -> list[StoredProof]:
        """Return the successes that the file records for a run; each is a claim."""
        rows = self.query(
            "SELECT id, goal_id, tactics FROM attempts WHERE run_id = ? AND success = 1 "
            "ORDER BY id",
            [run_id],
        )
        return [StoredProof(row["id"], row["goal_id"], tuple(self._tactics(row))) for row in rows]

    def withdraw(self, stored: StoredProof, why: str) -> None:
        """Turn a recorded success into an error, so that its strategy may be tried again."""
        self._write(
            "UPDATE attempts SET success = 0, status = 'error', error = ? WHERE id = ?",
            [why, stored.attempt],
        )

    def _tactics(self, row: sqlite3.Row) -> list[str]:
        with readable_errors(self.path):
            return jsontext.decode(row["tactics"], list[str])

    # -- runs -----------------------------------------------------------------------------

    def open_run(
        self, run_id: str, kind: str, subject: str, config: str, *, fresh: bool = False
    ) -> str:
        """Return the id of the unfinished run of this subject and configuration.

        If there is none, or with `fresh`, begin a new run with the id `run_id`.
        """
        rows = (
            []
            if fresh
            else self.query(
                "SELECT run_id FROM runs WHERE kind = ? AND subject = ? AND config = ? "
                "AND finished_at IS NULL ORDER BY started_at DESC LIMIT 1",
                [kind, subject, config],
            )
        )
        if rows:
            return rows[0]["run_id"]
        self._write(
            "INSERT INTO runs (run_id, kind, subject, config, started_at) VALUES (?, ?, ?, ?, ?)",
            [run_id, kind, subject, config, timestamp()],
        )
        return run_id

    def finish_run(self, run_id: str) -> None:
        """Record that a run ended, so that it is not continued."""
        self._write("UPDATE runs SET finished_at = ? WHERE run_id = ?", [timestamp(), run_id])

    # -- plumbing -------------------------------------------------------------------------

    def query(self, sql: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        """Return all rows of a query."""
        with self._lock, readable_errors(self.path, self._wait):
            cursor = self._connection.cursor()
            cursor.row_factory = sqlite3.Row
            return cursor.execute(sql, values).fetchall()

    def rows(self, sql: str, values: Sequence[object] = ()) -> Iterator[sqlite3.Row]:
        """Yield the rows of a query one by one, through a separate connection."""
        with readable_errors(self.path, self._wait):
            connection = database.open_read_only(self.path, SCHEMA, self._wait)
            try:
                yield from connection.execute(sql, values)
            finally:
                connection.close()

    def _write(self, sql: str, values: Sequence[object]) -> None:
        with self._lock, readable_errors(self.path, self._wait):
            self._connection.execute(sql, values)


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
        """Return the script that closed a goal before, as Lean displays the goal."""
        cached = self._ledger.get_cached_tactics(goal.removeprefix(_TURNSTILE))
        if cached is None or not cached["tactics"]:
            return ()
        return (CachedTactics("\n".join(cached["tactics"]), cached["success_rate"]),)
