"""The ranked list of core tactics: rules on the outline of the target and of the hypotheses.

The first round has what usually works and is quick; the second what is expensive or a long shot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from treewright.proving.records import Candidate, GoalView
from treewright.proving.sources.base import NOTHING, Suggestions
from treewright.proving.sources.classical_rules import by_contradiction, classical
from treewright.proving.sources.context import first
from treewright.proving.sources.hypothesis_rules import analysis, eliminations, long_shots, uses
from treewright.proving.sources.residue_rules import residues
from treewright.proving.sources.target_rules import Ranked, closers, last_resorts, structure

_MOST = 40
_FIRST = (structure, eliminations, closers, uses, analysis, residues, classical)
# Long shots have little of the prior even where nothing else is left to try.
_LATER_SHARE = 0.15
_LATER = (long_shots, last_resorts, by_contradiction)


class CoreTactics:
    """Proposes tactics of core Lean. Knows nothing but the goal."""

    name = "core"

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        context = first(goals)
        if round_number > 1:
            return NOTHING
        later = [pair for rule in _LATER for pair in rule(context)]
        now = later if round_number else [pair for rule in _FIRST for pair in rule(context)]
        ranked = best_first(now)[:_MOST]
        share = _LATER_SHARE if round_number else 1.0
        total = (sum(weight for weight, _ in ranked) or 1.0) / share
        return Suggestions(
            tuple(Candidate(tactic, weight / total, self.name) for weight, tactic in ranked),
            complete=round_number > 0 or not later,
        )


def best_first(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Each tactic once, with the best of its weights; equals stay in order."""
    best: dict[str, float] = {}
    for weight, tactic in ranked:
        best[tactic] = max(weight, best.get(tactic, 0.0))
    return sorted(((weight, tactic) for tactic, weight in best.items()), key=lambda pair: -pair[0])
