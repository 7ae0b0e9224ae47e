"""Tactics for what a file defines itself: unfold it, or simplify with it.

Names are read off the text, so a wrong one costs a failed attempt and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from treewright.proving.records import Candidate, GoalView
from treewright.proving.sources.base import NOTHING, Suggestions

_DEFINITION = re.compile(
    r"^[ \t]*(?:@\[[^\]]*\]\s*)?(?:(?:private|protected|noncomputable|partial)\s+)*"
    r"(?:def|abbrev)\s+([\w.'₀-₉]+)",
    re.MULTILINE,
)
_WORD = re.compile(r"[A-Za-z_][\w.'₀-₉]*")
_MOST = 3
_SHAPES = (("simp [{}]", 0.5), ("unfold {}", 0.3), ("simp_all [{}]", 0.2))


def defined_in(source: str) -> frozenset[str]:
    """The last parts of the names of the definitions in a text."""
    return frozenset(name.rpartition(".")[2] for name in _DEFINITION.findall(source))


class DefinitionTactics:
    """Proposes to look inside the definitions that a goal mentions."""

    name = "definitions"

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        if round_number > 0:
            return NOTHING
        texts = [goals[0].target, *(h.type for h in goals[0].hypotheses)]
        # `q.size` of a variable q is a call in dot notation and no name.
        variables = {h.name for h in goals[0].hypotheses}
        words = dict.fromkeys(
            word
            for text in texts
            for word in _WORD.findall(text)
            if word.partition(".")[0] not in variables
        )
        found = [word for word in words if word.rpartition(".")[2] in self._names][:_MOST]
        return Suggestions(
            tuple(
                Candidate(shape.format(word), weight / len(found), self.name)
                for word in found
                for shape, weight in _SHAPES
            )
        )
