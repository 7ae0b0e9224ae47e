"""The bandit, which ranks strategies: UCB over success per second, per class of goals. Pure.

For a strategy s among the available strategies:

    rate(s)  = success(s) / seconds(s)         both exponential moving averages, α = 0.1
    value(s) = rate(s) / max over t of rate(t)                              in [0, 1]
    score(s) = value(s) + C · sqrt(2 · ln(N + 1) / n(s))      C = 1.5 unless configured

n(s) is the number of trials of s (at least 1), N their sum. For a class of goals, success and
seconds are the class's own, blended with those over all goals as if these were five trials of
the class, and n and N count the class's trials. Failures are trials; cancelled attempts are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

ALPHA = 0.1
DEFAULT_EXPLORATION = 1.5
PRIOR_SUCCESS = 0.5
PRIOR_WEIGHT = 5
PRIOR_SECONDS = 30.0
_MIN_SECONDS = 0.05
"""Shorter times count as this: differences below it say nothing about a strategy."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Moving averages and counts of one strategy in one class of goals."""

    success_rate: float = PRIOR_SUCCESS
    seconds: float = 0.0
    trials: int = 0
    successes: int = 0

    def after(self, success: bool, seconds: float) -> Arm:
        """Return the averages after one more trial."""
        first = self.trials == 0
        return Arm(
            (1 - ALPHA) * self.success_rate + ALPHA * success,
            seconds if first else (1 - ALPHA) * self.seconds + ALPHA * seconds,
            self.trials + 1,
            self.successes + success,
        )


class Bandit:
    """The averages of the strategies, and their ranking.

    Args:
        arms: The averages so far, by class of goals and strategy.
        exploration: The constant C of the formula.
        strategies: The available strategies; equal scores rank in this order.
        limits: Time limits, which stand for the mean time of a strategy without trials.
    """

    def __init__(
        self,
        arms: Mapping[tuple[str, str], Arm] | None = None,
        *,
        exploration: float = DEFAULT_EXPLORATION,
        strategies: Sequence[str] = (),
        limits: Mapping[str, float] | None = None,
    ) -> None:
        self._arms = dict(arms or {})
        self._exploration = exploration
        self._strategies = tuple(strategies)
        self._limits = dict(limits or {})

    def arm(self, strategy: str, goal_class: str = "") -> Arm:
        """Return the averages of a strategy in a class of goals; `""` is all goals."""
        return self._arms.get((goal_class, strategy), Arm())

    def tell(self, strategy: str, goal_class: str, success: bool, seconds: float) -> None:
        """Learn from a trial."""
        for key in {"", goal_class}:
            self._arms[key, strategy] = self.arm(strategy, key).after(success, seconds)

    def score(self, strategy: str, goal_class: str = "") -> float:
        """Return the score of a strategy among the available ones."""
        return self._scores(goal_class, {*self._strategies, strategy})[strategy]

    def rank(self, available: Iterable[str], goal_class: str = "") -> list[str]:
        """Return the strategies, best first."""
        order = {strategy: number for number, strategy in enumerate(self._strategies)}
        candidates = sorted(available, key=lambda s: order.get(s, len(order)))
        scores = self._scores(goal_class, candidates)
        return sorted(candidates, key=lambda s: -scores[s])

    def _scores(self, goal_class: str, strategies: Iterable[str]) -> dict[str, float]:
        names = list(strategies)
        rates = {s: self._rate(s, goal_class) for s in names}
        best = max(rates.values(), default=0.0) or 1.0
        trials = {s: self.arm(s, goal_class).trials for s in names}
        total = sum(trials.values())
        return {
            s: rates[s] / best
            + self._exploration * math.sqrt(2 * math.log(total + 1) / max(1, trials[s]))
            for s in names
        }

    def _rate(self, strategy: str, goal_class: str) -> float:
        own, general = self.arm(strategy, goal_class), self.arm(strategy)
        weight = own.trials / (own.trials + PRIOR_WEIGHT) if goal_class else 1.0
        success = weight * own.success_rate + (1 - weight) * general.success_rate
        limit = self._limits.get(strategy, PRIOR_SECONDS)
        general_seconds = general.seconds if general.trials else limit
        seconds = weight * own.seconds + (1 - weight) * general_seconds
        if not own.trials and not general.trials:
            seconds = limit
        return success / max(seconds, _MIN_SECONDS)
