"""Several sources as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from treewright.proving.records import Candidate, GoalView
from treewright.proving.sources.base import Suggestions, TacticSource, rank_priors, stop_when


class MergedSource:
    """Asks sources in order and gives each a share of the prior by its weight.

    A tactic that several propose is entered once, under the first's name, with what all gave
    it. In the first round the priors sum to 1, whoever has something to say; later rounds keep
    the scale their sources give, so that a last resort stays one.
    """

    def __init__(self, *sources: TacticSource | tuple[TacticSource, float]) -> None:
        self._sources = [entry if isinstance(entry, tuple) else (entry, 1.0) for entry in sources]
        self.name = "+".join(source.name for source, _ in self._sources)

    @property
    def overlaps(self) -> bool:
        """Whether asking takes long enough to be done while Lean works."""
        return any(getattr(source, "overlaps", False) for source, _ in self._sources)

    def stop_when(self, stop: Callable[[], bool]) -> None:
        for source, _ in self._sources:
            stop_when(source, stop)

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        weights: dict[str, float] = {}
        origin: dict[str, str] = {}
        complete = True
        for source, share in self._sources:
            suggestions = source.suggest(goals, round_number)
            complete = complete and suggestions.complete
            for candidate, part in _parts(suggestions.candidates):
                weights[candidate.tactic] = weights.get(candidate.tactic, 0.0) + share * part
                origin.setdefault(candidate.tactic, candidate.source or source.name)
        whole = sum(share for _, share in self._sources)
        total = whole if round_number else sum(weights.values()) or 1.0
        merged = [Candidate(t, weight / total, origin[t]) for t, weight in weights.items()]
        merged.sort(key=lambda candidate: -(candidate.prior or 0.0))
        return Suggestions(tuple(merged), complete)


def _parts(candidates: Sequence[Candidate]) -> list[tuple[Candidate, float]]:
    """What each has of its source's share. Without priors, by place."""
    ranked = rank_priors(len(candidates))
    given = [
        ranked[place] if candidate.prior is None else candidate.prior
        for place, candidate in enumerate(candidates)
    ]
    total = max(1.0, sum(given))
    return [(c, prior / total) for c, prior in zip(candidates, given, strict=True)]


def together(one: Suggestions, other: Suggestions, *, whole: bool) -> Suggestions:
    """Two answers as one, each with the priors it has; `whole`: they are made to sum to 1."""
    weights: dict[str, float] = {}
    origin: dict[str, str] = {}
    for candidate in (*one.candidates, *other.candidates):
        prior = candidate.prior or 0.0
        weights[candidate.tactic] = max(weights.get(candidate.tactic, 0.0), prior)
        origin.setdefault(candidate.tactic, candidate.source)
    total = (sum(weights.values()) or 1.0) if whole else 1.0
    merged = [Candidate(t, weight / total, origin[t]) for t, weight in weights.items()]
    merged.sort(key=lambda candidate: -(candidate.prior or 0.0))
    return Suggestions(tuple(merged), one.complete and other.complete)
