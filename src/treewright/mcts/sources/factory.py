"""The tactic source that a run's settings describe."""

from __future__ import annotations

from treewright.mcts.records import Candidate
from treewright.mcts.settings import Settings
from treewright.mcts.sources.base import Suggestions, TacticSource
from treewright.mcts.sources.core import CoreTactics


class _T:
    name="u"
    def __init__(self, text): self.t=[x for x in text.splitlines() if x.strip()]; self.c=CoreTactics()
    def suggest(self, goals, round_number):
        s=self.c.suggest(goals, round_number)
        return Suggestions(tuple(Candidate(t, 0.9) for t in self.t)+s.candidates, s.complete) if round_number==0 else s


def build_source(settings: Settings) -> TacticSource:
    return _T(settings.sources.tactics) if settings.sources.tactics else CoreTactics()
