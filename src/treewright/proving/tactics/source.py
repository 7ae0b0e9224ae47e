"""The interface of a tactic source, sources combined into one, and noise on their priors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from math import log
from typing import Protocol

import msgspec

from treewright.proving.records import Candidate, GoalView


class Suggestions(msgspec.Struct, frozen=True):
    """Tactics for a node. `complete`: whether the source has nothing more to suggest for it."""

    candidates: tuple[Candidate, ...]
    complete: bool = True


NOTHING = Suggestions(())
OFFERED_PRIOR = 4.0
"""The prior of a script that is known to close the root, or likely to: above all others."""
OFFERED_SOURCES = frozenset({"strategies", "tested values"})
"""The sources of scripts that are made before a search, by `portfolio` and by tests of the goal."""


class TacticSource(Protocol):
    """Suggests tactics for the first of some goals; the others share metavariables with it.

    Rounds count from 0. A source without further suggestions returns none, and is complete.

    The answer depends only on the goals, the round and the source's seed. A source may be asked
    from a thread other than the one that uses Lean.
    """

    name: str

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions: ...


class AskingStopped(Exception):
    """A source stopped waiting for an answer because the search is to end.

    This is no answer without suggestions: nothing is recorded.
    """


def stop_when(source: TacticSource, stop: Callable[[], bool]) -> None:
    """Tell a source that waits for answers when to stop waiting, if it has such a method."""
    tell = getattr(source, "stop_when", None)
    if tell is not None:
        tell(stop)


def goal_text(goal: GoalView) -> str:
    """Return a goal as Lean prints it, one hypothesis per line.

    It is the key of the tactic cache.
    """
    lines = [f"{h.name} : {h.type}" for h in goal.hypotheses]
    return "\n".join([*lines, f"⊢ {goal.target}"])


def rank_priors(count: int) -> list[float]:
    """Return priors by rank, for candidates without any: they fall off slowly and sum to 1."""
    weights = [1.0 / (place + 2) for place in range(count)]
    total = sum(weights) or 1.0
    return [weight / total for weight in weights]


def _by_prior(candidate: Candidate) -> float:
    return -(candidate.prior or 0.0)


class Frontier:
    """The candidates of one node that are still to be tried, best first.

    Further suggestions are merged in: tried tactics are not tried again, and waiting ones keep
    their priors.
    """

    __slots__ = ("complete", "results", "rounds", "seen", "untried")

    def __init__(self) -> None:
        self.untried: list[Candidate] = []
        self.seen: set[str] = set()
        self.results: set[tuple[str, ...]] = set()
        self.rounds = 0
        self.complete = False

    def merge(self, candidates: Iterable[Candidate], complete: bool) -> None:
        self.rounds += 1
        self.complete = complete
        seen, untried = self.seen, self.untried
        for candidate in candidates:
            if candidate.tactic not in seen:
                seen.add(candidate.tactic)
                untried.append(candidate)
        untried.sort(key=_by_prior)  # stable: without priors the order is kept

    def take(self) -> Candidate:
        return self.untried.pop(0)


class MergedSource:
    """Asks several sources and gives each a share of the prior by its weight.

    A tactic that several sources suggest becomes one candidate, named after the first source, with
    the sum of the priors. In the first round the priors sum to 1. Later rounds keep the scale of
    their sources, so that a last resort keeps a small prior.
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
    """Return each candidate's part of its source's share; by rank if there are no priors."""
    ranked = rank_priors(len(candidates))
    given = [
        ranked[place] if candidate.prior is None else candidate.prior
        for place, candidate in enumerate(candidates)
    ]
    total = max(1.0, sum(given))
    return [(c, prior / total) for c, prior in zip(candidates, given, strict=True)]


def combined_suggestions(one: Suggestions, other: Suggestions, *, whole: bool) -> Suggestions:
    """Combine two answers with their priors; with `whole` the priors are scaled to sum to 1."""
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


class NoisySource:
    """Mixes a `fraction` of Dirichlet noise (concentration 1) into a source's priors.

    Runs with other seeds then search in another order. The noise depends only on the seed and the
    text of the goals, not on the time at which a goal is reached.
    """

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
    """Return a number above 0 and at most 1, from a hash of the arguments."""
    digest = hashlib.sha256(repr((seed, text, tactic)).encode()).digest()
    return (int.from_bytes(digest[:6]) + 1) / (1 << 48)
