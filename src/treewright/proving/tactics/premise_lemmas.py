"""Lemmas that a premise search finds, used with `exact`, `apply`, `rw` and `simp`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from treewright.lean.session.inputs import is_identifier
from treewright.lean.verify.restrictions import find_escapes
from treewright.proving.records import Candidate, GoalView
from treewright.proving.tactics.goal_outline import flat, shape
from treewright.proving.tactics.source import Suggestions

_ALL_TOGETHER = 0.1


class Premise(Protocol):
    """A declaration that may help: its name and, if known, its type."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str | None: ...


class PremiseSearch(Protocol):
    """Finds declarations near a text, the best first. `PremiseIndex.lexical` is one."""

    def __call__(self, text: str, k: int, /) -> Sequence[Premise]: ...


class LemmaTactics:
    """Asks the search once for each goal. `late`: in the second round, after lemmas that unify."""

    name = "lemmas"

    def __init__(self, search: PremiseSearch, *, count: int = 8, late: bool = False) -> None:
        self._search = search
        self._count = count
        self._round = int(late)

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        if round_number != self._round:
            return Suggestions((), complete=round_number > self._round)
        found = [
            premise
            for premise in self._search(flat(goals[0].target), self._count)
            # An index is a file: only a valid identifier from it may go into a tactic.
            if is_identifier(premise.name) and not find_escapes(premise.name)
        ]
        candidates: list[Candidate] = []
        for place, premise in enumerate(found):
            for weight, tactic in _tactics(premise):
                candidates.append(Candidate(tactic, weight / (place + 2), self.name))
        if self._round and found:
            names = ", ".join(premise.name for premise in found)
            candidates.append(Candidate(f"grind [{names}]", _ALL_TOGETHER, self.name))
        return Suggestions(tuple(candidates))


def _tactics(premise: Premise) -> list[tuple[float, str]]:
    name = premise.name
    tactics = [(0.4, f"exact {name} ..")] if premise.type and "→" in premise.type else []
    tactics = [*tactics, (0.4, f"apply {name}")]
    outline = shape(premise.type or "")
    while outline.kind in ("forall", "implies"):
        outline = shape(outline.parts[-1])
    if premise.type is None or outline.kind in ("eq", "iff"):
        tactics += [(0.3, f"rw [{name}]"), (0.2, f"simp [{name}]"), (0.1, f"rw [← {name}]")]
    return tactics
