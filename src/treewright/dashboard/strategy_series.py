"""How strategies did over time: the bandit run again over the attempts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from treewright.orchestrator.ledger.counting import TRIALS
from treewright.orchestrator.scheduling.bandit import Arm, Bandit
from treewright.orchestrator.types import StrategyType, is_known

MOST_ATTEMPTS = 20_000
_POINTS = 60


def scores(arms: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """UCB score and trials of each strategy over all goals, from the rows of `bandit`."""
    known = {
        ("", StrategyType(row["strategy"])): Arm(
            row["success_rate"], row["seconds"], row["trials"], row["successes"]
        )
        for row in arms
        if row["goal_class"] == "" and is_known(row["strategy"])
    }
    bandit = Bandit(known)
    return {
        str(strategy): {"ucb": bandit.score(strategy), "trials": arm.trials}
        for (_, strategy), arm in known.items()
    }


def over_time(attempts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Points per strategy: success rate, UCB score and wasted CPU after so many attempts."""
    bandit = Bandit()
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
            if is_known(name):
                strategy = StrategyType(name)
                bandit.tell(strategy, "", bool(row["success"]), row["time_seconds"])
        if row["status"] == "cancelled":
            total["wasted"] += row["cpu_seconds"]
        if number % every == 0 or number == len(attempts):
            points += [_point(number, one, totals[one], bandit) for one in sorted(totals)]
    return points


def _point(number: int, name: str, total: dict[str, float], bandit: Bandit) -> dict[str, Any]:
    known = is_known(name) and name != StrategyType.CACHE
    return {
        "attempts": number,
        "strategy": name,
        "rate": total["successes"] / total["trials"] if total["trials"] else 0.0,
        "ucb": bandit.score(StrategyType(name)) if known else None,
        "wasted": total["wasted"],
    }
