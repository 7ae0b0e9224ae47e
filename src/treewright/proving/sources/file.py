"""Tactics from a file, the same for every goal: one a line, best first.

`# …` is a comment. A line may begin with a prior and a tab: `0.3<TAB>simp [Nat.mul_comm]`.
"""

from __future__ import annotations

from collections.abc import Sequence

from treewright.kernel.errors import UsageError
from treewright.lean.escapes import find_escapes
from treewright.proving.records import Candidate, GoalView
from treewright.proving.sources.base import NOTHING, Suggestions, rank_priors


class FileTactics:
    """Proposes every tactic of a file for every goal."""

    name = "file"

    def __init__(self, text: str, where: str) -> None:
        """`where` names the text in messages about it."""
        self._suggestions = Suggestions(parse(text, where))

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        return NOTHING if round_number > 0 else self._suggestions


def parse(text: str, path: str) -> tuple[Candidate, ...]:
    """The tactics of a text. Raises UsageError that names the line."""
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
            raise UsageError(f"{where}: the tactic stands in the file already")
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
