"""How strategies did over time: the bandit run again over the attempts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from treewright.orchestrator.ledger.statistics import TRIALS
from treewright.orchestrator.scheduling.bandit import Arm, Bandit
from treewright.orchestrator.types import StrategyType

MOST_ATTEMPTS = 20_000
_POINTS = 60


def scores(arms: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """UCB score and trials of each strategy over all goals, from the rows of `bandit`."""
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


def over_time(attempts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points per strategy: success rate, UCB score and wasted CPU after so many attempts."""
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
