"""What worked before on the same goal, tried before anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from treewright.lean.escapes import find_escapes
from treewright.proving.records import Candidate, GoalView
from treewright.proving.sources.base import NOTHING, Suggestions


class CachedTactic(Protocol):
    """A remembered tactic and how often it closed the goal it was remembered for."""

    @property
    def tactic(self) -> str: ...

    @property
    def success_rate(self) -> float: ...


class TacticCache(Protocol):
    """Remembers tactics by the text of a goal. What it says must not change during a run."""

    def tactics_for(self, goal: str) -> Sequence[CachedTactic]: ...


class CachedTactics:
    """Proposes remembered tactics that succeed more often than `threshold`."""

    name = "cache"

    def __init__(self, cache: TacticCache, *, threshold: float = 0.7) -> None:
        self._cache = cache
        self._threshold = threshold

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        if round_number > 0:
            return NOTHING
        known = [
            entry
            for entry in self._cache.tactics_for(goal_text(goals[0]))
            if entry.success_rate > self._threshold and not find_escapes(entry.tactic)
        ]
        known.sort(key=lambda entry: (-entry.success_rate, entry.tactic))
        return Suggestions(
            tuple(Candidate(entry.tactic, entry.success_rate, self.name) for entry in known)
        )


def goal_text(goal: GoalView) -> str:
    """A goal as Lean shows it, one hypothesis a line: the cache's key."""
    lines = [f"{h.name} : {h.type}" for h in goal.hypotheses]
    return "\n".join([*lines, f"⊢ {goal.target}"])
