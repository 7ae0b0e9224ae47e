"""Noise on priors, so that runs with other seeds search in another order.

Drawn from the seed and the goals' text alone: it does not matter when or by whom a goal is met.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from math import log

from treewright.proving.records import Candidate, GoalView
from treewright.proving.sources.base import Suggestions, TacticSource, stop_when
from treewright.proving.sources.cached import goal_text


class NoisySource:
    """Mixes a `fraction` of Dirichlet noise (concentration 1) into a source's priors."""

    def __init__(self, source: TacticSource, seed: int, fraction: float = 0.1) -> None:
        self._source = source
        self._seed = seed
        self._fraction = fraction
        self.name = source.name

    @property
    def overlaps(self) -> bool:
        return getattr(self._source, "overlaps", False)

    def stop_when(self, stop: Callable[[], bool]) -> None:
        stop_when(self._source, stop)

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        plain = self._source.suggest(goals, round_number)
        if not self._fraction or any(c.prior is None for c in plain.candidates):
            return plain
        text = "\n\n".join(goal_text(goal) for goal in goals)
        # Shares of exponential draws are Dirichlet distributed with concentration 1.
        drawn = [-log(_uniform(self._seed, text, c.tactic)) for c in plain.candidates]
        total = sum(drawn) or 1.0
        whole = sum(c.prior or 0.0 for c in plain.candidates)
        kept = 1.0 - self._fraction
        noisy = [
            Candidate(
                c.tactic,
                kept * (c.prior or 0.0) + self._fraction * whole * draw / total,
                c.source,
            )
            for c, draw in zip(plain.candidates, drawn, strict=True)
        ]
        noisy.sort(key=lambda candidate: -(candidate.prior or 0.0))
        return Suggestions(tuple(noisy), plain.complete)


def _uniform(seed: int, text: str, tactic: str) -> float:
    """A number above 0 and at most 1."""
    digest = hashlib.sha256(repr((seed, text, tactic)).encode()).digest()
    return (int.from_bytes(digest[:6]) + 1) / (1 << 48)
