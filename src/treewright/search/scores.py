"""Scores: one number, or numbers by config that are compared pair by pair."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from treewright.kernel.errors import UsageError
from treewright.kernel.stats import (
    beyond_resolution,
    beyond_rounding,
    sizes_of_changes,
    student_quantile,
)
from treewright.search.node import Node
from treewright.search.tree import LARGEST_VALUE

Direction = Literal["maximize", "minimize"]
Gate = Literal["none", "parent"]
Score = float | Mapping[str, float]

_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Comparison:
    """How much better one node is than another, in the direction of the search.

    Attributes:
        gain: The mean difference.
        low: The lower bound of the mean difference with 95 % confidence, by Student's t over the
            pairs. None if the noise is unknown, because the scores are single numbers.
        high: The upper bound.
        pairs: The number of pairs.
    """

    gain: float
    low: float | None
    high: float | None
    pairs: int

    @property
    def is_better(self) -> bool:
        """Whether the node is better beyond the noise, or simply better if the noise is unknown."""
        return self.gain > 0 if self.low is None else self.low > 0


def check(score: Score) -> tuple[float, dict[str, float] | None]:
    """Return the number of a score (the mean of numbers by config), and the numbers by config.

    Raises:
        UsageError: The score is not a finite number.
    """
    if isinstance(score, Mapping):
        if not score:
            raise UsageError("a score by config needs at least one config")
        scores = {str(config): _finite(value, LARGEST_VALUE) for config, value in score.items()}
        return math.fsum(scores.values()) / len(scores), scores
    return _finite(score), None


def value(score: float, direction: Direction) -> float:
    """Return a score as a value of which larger is better, whatever the direction."""
    return score if direction == "maximize" else -score


def compare(node: Node, other: Node, direction: Direction) -> Comparison:
    """Return how much better `node` is than `other`. A difference within rounding counts as 0.

    Raises:
        UsageError: A node has no score, or the scores are of different kinds.
    """
    if node.score is None or other.score is None:
        raise UsageError("a node without a score cannot be compared")
    if (node.scores is None) != (other.scores is None):
        raise UsageError("one score is by config and the other is not")
    if node.scores is None or other.scores is None:
        (gain,) = _gains([other.score], [node.score], direction)
        return Comparison(gain, None, None, 1)
    check_configs(node.scores, other.scores)
    before = list(other.scores.values())
    after = [node.scores[config] for config in other.scores]
    deltas = _gains(before, after, direction)
    mean = math.fsum(deltas) / len(deltas)
    if len(deltas) < 2:
        return Comparison(mean, None, None, 1)
    squares = math.fsum((delta - mean) ** 2 for delta in deltas)
    spread = math.sqrt(squares / (len(deltas) - 1) / len(deltas))
    reach = student_quantile(0.5 + _CONFIDENCE / 2, len(deltas) - 1) * spread
    low, high = mean - reach, mean + reach
    size = _size(sizes_of_changes(deltas, before, after))
    mean, low, high = (beyond_resolution(number, size) for number in (mean, low, high))
    return Comparison(mean, low, high, len(deltas))


def _gains(
    before: Sequence[float], after: Sequence[float], direction: Direction
) -> Sequence[float]:
    sign = 1.0 if direction == "maximize" else -1.0
    gains = [sign * (b - a) for a, b in zip(before, after, strict=True)]
    return beyond_rounding(gains, before, after, _size(before))


def _size(values: Sequence[float]) -> float:
    return math.fsum(abs(value) for value in values) / len(values)


def check_configs(scores: Mapping[str, float], expected: Mapping[str, float]) -> None:
    """Raise UsageError unless the scores have the same configs; a missing one is not a zero."""
    for config in expected:
        if config not in scores:
            raise UsageError(f"the score has no value for config {config!r}, as others have")
    for config in scores:
        if config not in expected:
            raise UsageError(f"the score has a value for config {config!r}, which others have not")


def _finite(value: float, most: float = math.inf) -> float:
    """Return any real number, also numpy's, as a float; raise UsageError for other values."""
    if isinstance(value, Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # the int is too large for a float
            number = float(value)
            if math.isfinite(number) and abs(number) <= most:
                return number
    if most < math.inf:
        raise UsageError(f"a score by config is a number within {most:g}, not {_shown(value)}")
    raise UsageError(
        f"a score is a finite number, not {_shown(value)}; a failure is told by fail()"
    )


def _shown(value: object) -> str:
    try:
        return f"{value!r:.80}"
    except ValueError:  # the int has too many digits to be shown
        return "this one"
