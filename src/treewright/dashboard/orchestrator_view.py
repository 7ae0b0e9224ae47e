"""Documents about the orchestrator's ledger for the pages. Read-only.

`orchestrator.http_documents` makes the documents of `/api/stats`, `/api/marketplace` and
`/api/health`; this module adds the series, runs and minutes of the page. The current slots of a
scheduler are not in the ledger and not shown.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from treewright.dashboard.roots import RunRef
from treewright.kernel.errors import TreewrightError
from treewright.kernel.text import jsontext
from treewright.orchestrator import http_documents as api
from treewright.orchestrator.bandit import Arm, Bandit
from treewright.orchestrator.ledger.attempts import (
    STUB_NOTICE,
    TRIALS,
    AttemptCounts,
    is_stub_ledger,
)
from treewright.orchestrator.ledger.schema import open_for_reading
from treewright.orchestrator.scheduling.throttle import machine_load
from treewright.orchestrator.types import StrategyType

Document = dict[str, Any]

_ABSENT = Path("no ledger")
_MOST_MINUTES = 12
_MOST_RUNS = 20


def stats(run: RunRef | None) -> Document:
    """Return the document of `GET /api/stats`, with a `problem` if the ledger cannot be read."""
    return _or_empty(api.stats, run)


def marketplace(run: RunRef | None) -> Document:
    """Return the document of `GET /api/marketplace`, with a `problem` as above."""
    return _or_empty(api.marketplace, run)


def health(run: RunRef | None) -> Document:
    """Return the document of `GET /api/health`."""
    return api.health(run.path if run is not None else _ABSENT)


def overview(run: RunRef) -> Document:
    """Return the whole document of the orchestrator's page."""
    found = stats(run)
    found["strategies"] = {name: {**one} for name, one in found["strategies"].items()}
    more: Document = {"series": [], "runs": [], "minutes": []}
    if not found["problem"]:
        with contextlib.suppress(TreewrightError, sqlite3.Error), _reading(run) as ledger:
            if ledger is not None:
                more = _page_extras(ledger, found["strategies"])
    return {
        "run": _summary(run, found),
        "stats": found,
        "marketplace": marketplace(run),
        "recent": found["recent"],
        "machine_load": round(machine_load(), 2),
        **more,
    }


def summary(run: RunRef) -> Document:
    """Return the summary for the home page."""
    return _summary(run, stats(run))


def _or_empty(make: Callable[[Path], Document], run: RunRef | None) -> Document:
    try:
        return make(run.path if run is not None else _ABSENT) | {"problem": ""}
    except (TreewrightError, sqlite3.Error, ValueError) as error:
        return make(_ABSENT) | {"problem": str(error)}


class _Ledger:
    """A connection that returns rows as dicts."""

    def __init__(self, connection: sqlite3.Connection, stubs: bool) -> None:
        self._connection = connection
        self._stubs = stubs

    @property
    def counted(self) -> str:
        """Return the SQL condition for the attempts that count in this ledger."""
        return AttemptCounts(lambda *_: (), self._stubs).condition

    def rows(self, sql: str, *values: object) -> list[Document]:
        return [dict(row) for row in self._connection.execute(sql, values)]


@contextlib.contextmanager
def _reading(run: RunRef) -> Iterator[_Ledger | None]:
    with open_for_reading(run.path) as connection:
        yield None if connection is None else _Ledger(connection, is_stub_ledger(run.path))


def _page_extras(ledger: _Ledger, strategies: Document) -> Document:
    """Add scores to the strategies, and return the runs, series and minutes."""
    for name, scored in strategy_scores(ledger.rows("SELECT * FROM bandit")).items():
        if name in strategies:
            strategies[name] |= scored
    attempts = ledger.rows(
        "SELECT strategy, success, time_seconds, cpu_seconds, status FROM "  # noqa: S608
        f"(SELECT * FROM attempts WHERE {ledger.counted} ORDER BY id DESC LIMIT ?) ORDER BY id",
        MOST_ATTEMPTS,
    )
    runs = ledger.rows("SELECT * FROM runs ORDER BY started_at DESC LIMIT ?", _MOST_RUNS)
    return {
        "series": strategy_series(attempts),
        "runs": [row | {"config": _decoded(row["config"])} for row in runs],
        "minutes": ledger.rows(
            "SELECT substr(timestamp, 1, 16) AS minute, count(*) AS attempts, "
            "sum(time_seconds) / 60 AS at_once, sum(cpu_seconds) AS cpu_seconds FROM attempts "
            "GROUP BY minute ORDER BY minute DESC LIMIT ?",
            _MOST_MINUTES,
        ),
    }


def _summary(run: RunRef, found: Document) -> Document:
    last = found["recent"][0]["timestamp"] if found["recent"] else None
    unfinished = sum(1 for one in found["runs"] if one.get("finished_at") is None)
    detail = f"runs not finished: {unfinished}" if unfinished else "every attempt of every run"
    if found["stubs"]:
        detail = f"{STUB_NOTICE}; {detail}"
    problem = found["problem"]
    tried = list(found["strategies"].values())
    return {
        "key": run.key,
        "kind": run.kind,
        "run_id": run.project.name,
        "created_at": last,
        "liveness": {
            "state": "damaged" if problem else "ledger",
            "detail": problem or detail,
        },
        "progress": {"done": found["goals"]["solved"], "of": found["goals"]["tried"]},
        "attempts": found["attempts"],
        "spent": {
            "seconds": sum(one["time_seconds"] for one in tried),
            "cpu_seconds": sum(one["cpu_seconds"] for one in tried),
            "cost_usd": 0.0,
            "prompt_tokens": 0,
            "completion_tokens": 0,
        },
        "eta_seconds": None,
        "problem": problem,
    }


def _decoded(text: str) -> object:
    """Return the decoded JSON of a column, or the text itself if it is not JSON."""
    try:
        return jsontext.decode(text)
    except msgspec.DecodeError:
        return text


MOST_ATTEMPTS = 20_000
_POINTS = 60


def strategy_scores(arms: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the UCB score and the trials of each strategy over all goals."""
    known = {
        ("", row["strategy"]): Arm(
            row["success_rate"], row["seconds"], row["trials"], row["successes"]
        )
        for row in arms
        if row["goal_class"] == ""
    }
    bandit = Bandit(known, strategies=[strategy for _, strategy in known])
    return {
        strategy: {"ucb": bandit.score(strategy), "trials": arm.trials}
        for (_, strategy), arm in known.items()
    }


def strategy_series(attempts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return points for each strategy: success rate, UCB score and wasted CPU by attempts.

    The bandit is run again over the recorded attempts.
    """
    names = dict.fromkeys(row["strategy"] for row in attempts)
    bandit = Bandit(strategies=[name for name in names if name != StrategyType.CACHE])
    totals: dict[str, dict[str, float]] = {}
    points: list[dict[str, Any]] = []
    every = max(1, len(attempts) // _POINTS)
    for number, row in enumerate(attempts, start=1):
        name = row["strategy"]
        total = totals.setdefault(name, {"trials": 0, "successes": 0, "wasted": 0.0})
        counts = row["status"] in TRIALS or not row["status"]
        if counts:
            total["trials"] += 1
            total["successes"] += row["success"]
            bandit.tell(name, "", bool(row["success"]), row["time_seconds"])
        if row["status"] == "cancelled":
            total["wasted"] += row["cpu_seconds"]
        if number % every == 0 or number == len(attempts):
            points += [_point(number, one, totals[one], bandit) for one in sorted(totals)]
    return points


def _point(number: int, name: str, total: dict[str, float], bandit: Bandit) -> dict[str, Any]:
    return {
        "attempts": number,
        "strategy": name,
        "rate": total["successes"] / total["trials"] if total["trials"] else 0.0,
        "ucb": None if name == StrategyType.CACHE else bandit.score(name),
        "wasted": total["wasted"],
    }
