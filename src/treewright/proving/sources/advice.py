"""Tactics that search the library themselves, such as `exact?`. Expensive, so they come late.

What they find is written into the proof, not they themselves (see `environment`).
"""

from __future__ import annotations

from collections.abc import Sequence

from treewright.proving.records import Candidate, GoalView
from treewright.proving.sources.base import Suggestions

_PRIOR = 0.01


class LeanAdvice:
    """Proposes library searches once everything else of a node was tried."""

    name = "advice"

    def __init__(self, tactics: Sequence[str] = ("exact?",), *, first_round: int = 1) -> None:
        self._candidates = tuple(Candidate(tactic, _PRIOR, self.name) for tactic in tactics)
        self._first_round = first_round

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        if round_number < self._first_round:
            return Suggestions((), complete=False)
        return Suggestions(self._candidates)
