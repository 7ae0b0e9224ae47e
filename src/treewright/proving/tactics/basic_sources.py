"""Sources that do not look at the shape of a goal.

They suggest the user's tactics, remembered tactics, unfolding the file's definitions, and Lean's
own search.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from treewright.kernel.errors import UsageError
from treewright.lean.verify.restrictions import find_escapes
from treewright.proving.records import Candidate, GoalView
from treewright.proving.tactics.source import NOTHING, Suggestions, goal_text, rank_priors


class FileTactics:
    """Suggests the tactics of a user's file for every goal: one tactic a line, the best first."""

    name = "file"

    def __init__(self, text: str, where: str) -> None:
        """Read the tactics; `where` names the text in error messages."""
        self._suggestions = Suggestions(parse(text, where))

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        return NOTHING if round_number > 0 else self._suggestions


def parse(text: str, path: str) -> tuple[Candidate, ...]:
    """Return the tactics of a text, one a line.

    `# …` is a comment. A line may begin with a prior and a tab: `0.3<TAB>simp [Nat.mul_comm]`.
    Raises UsageError, which names the line.
    """
    tactics: list[str] = []
    given: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{path}:{number}"
        before, tab, after = line.partition("\t")
        tactic = (after if tab else before).strip()
        if not tactic:
            raise UsageError(f"{where}: a prior without a tactic")
        if escapes := find_escapes(tactic):
            raise UsageError(f"{where}: `{escapes[0].word}` is not allowed in a proof")
        if tactic in tactics:
            raise UsageError(f"{where}: the tactic is in the file twice")
        tactics.append(tactic)
        if tab:
            given[tactic] = _prior(before.strip(), where)
    if not tactics:
        raise UsageError(f"{path}: no tactics in it; write one a line")
    ranked = dict(zip(tactics, rank_priors(len(tactics)), strict=True))
    return tuple(Candidate(t, given.get(t, ranked[t]), FileTactics.name) for t in tactics)


def _prior(text: str, where: str) -> float:
    try:
        prior = float(text)
    except ValueError:
        raise UsageError(f"{where}: the prior `{text}` is not a number") from None
    if not 0.0 < prior <= 1.0:
        raise UsageError(f"{where}: the prior {text} is not above 0 and at most 1")
    return prior


class CachedTactic(Protocol):
    """A remembered tactic, and how often it closed the goal it was remembered for."""

    @property
    def tactic(self) -> str: ...

    @property
    def success_rate(self) -> float: ...


class TacticCache(Protocol):
    """Remembers tactics by the text of a goal. Its answers must not change during a run."""

    def tactics_for(self, goal: str) -> Sequence[CachedTactic]: ...


class CachedTactics:
    """Suggests remembered tactics that succeed more often than `threshold`."""

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


_DEFINITION = re.compile(
    r"^[ \t]*(?:@\[[^\]]*\]\s*)?(?:(?:private|protected|noncomputable|partial)\s+)*"
    r"(?:def|abbrev)\s+([\w.'₀-₉]+)",
    re.MULTILINE,
)
_DEFINED_WORD = re.compile(r"[A-Za-z_][\w.'₀-₉]*")
_MOST_DEFINITIONS = 3
_DEFINITION_TACTICS = (("simp [{}]", 0.5), ("unfold {}", 0.3), ("simp_all [{}]", 0.2))


def defined_in(source: str) -> frozenset[str]:
    """Return the last parts of the names of the definitions in a text."""
    return frozenset(name.rpartition(".")[2] for name in _DEFINITION.findall(source))


class DefinitionTactics:
    """Suggests unfolding or simplifying the definitions of the file that a goal mentions."""

    name = "definitions"

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        if round_number > 0:
            return NOTHING
        texts = [goals[0].target, *(h.type for h in goals[0].hypotheses)]
        # `q.size` of a variable q is a call in dot notation, not a name.
        variables = {h.name for h in goals[0].hypotheses}
        words = dict.fromkeys(
            word
            for text in texts
            for word in _DEFINED_WORD.findall(text)
            if word.partition(".")[0] not in variables
        )
        found = [word for word in words if word.rpartition(".")[2] in self._names][
            :_MOST_DEFINITIONS
        ]
        return Suggestions(
            tuple(
                Candidate(shape.format(word), weight / len(found), self.name)
                for word in found
                for shape, weight in _DEFINITION_TACTICS
            )
        )


_ADVICE_PRIOR = 0.01


class LeanAdvice:
    """Suggests Lean's own library search (`exact?`) after a node's other candidates.

    The tactic that the search finds is written into the proof, not the search.
    """

    name = "advice"

    def __init__(self, tactics: Sequence[str] = ("exact?",), *, first_round: int = 1) -> None:
        self._candidates = tuple(Candidate(tactic, _ADVICE_PRIOR, self.name) for tactic in tactics)
        self._first_round = first_round

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        if round_number < self._first_round:
            return Suggestions((), complete=False)
        return Suggestions(self._candidates)
