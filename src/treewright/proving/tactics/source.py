"""Several sources as one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from math import log
from typing import Protocol

import msgspec

from treewright.proving.records import Candidate, GoalView


class Suggestions(msgspec.Struct, frozen=True):
    """Tactics for a node. `complete` means that asking again would bring nothing new."""

    candidates: tuple[Candidate, ...]
    complete: bool = True


NOTHING = Suggestions(())


class TacticSource(Protocol):
    """Proposes tactics for the first of some goals (the rest share metavariables with it).

    Rounds count from 0. What has no more to say says nothing, and that it is complete.

    The answer depends on the goals, the round and the source's seed only. A source may be asked
    from another thread than the one that talks to Lean.
    """

    name: str

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions: ...


class AskingStopped(Exception):
    """A source gave up waiting for an answer because the search is to end.

    Not the same as an answer without suggestions: nothing is known, and nothing is recorded.
    """


def stop_when(source: TacticSource, stop: Callable[[], bool]) -> None:
    """Tells a source that waits for others (it has a method of this name) when to give up."""
    tell = getattr(source, "stop_when", None)
    if tell is not None:
        tell(stop)


def goal_text(goal: GoalView) -> str:
    """A goal as Lean shows it, one hypothesis a line: the cache's key."""
    lines = [f"{h.name} : {h.type}" for h in goal.hypotheses]
    return "\n".join([*lines, f"⊢ {goal.target}"])


def rank_priors(count: int) -> list[float]:
    """Priors by place alone, where nobody gave any: they fall off slowly and sum to 1."""
    weights = [1.0 / (place + 2) for place in range(count)]
    total = sum(weights) or 1.0
    return [weight / total for weight in weights]


def _by_prior(candidate: Candidate) -> float:
    return -(candidate.prior or 0.0)


class Frontier:
    """The candidates of one node: what is still to be tried, best first.

    Asking again merges: what was tried stays tried, what waits keeps its place among the new.
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
        untried.sort(key=_by_prior)  # stable: without priors they stay as they came

    def take(self) -> Candidate:
        return self.untried.pop(0)


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


def combined_suggestions(one: Suggestions, other: Suggestions, *, whole: bool) -> Suggestions:
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


class NoisySource:
    """Mixes a `fraction` of Dirichlet noise (concentration 1) into a source's priors."""

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
    """A number above 0 and at most 1."""
    digest = hashlib.sha256(repr((seed, text, tactic)).encode()).digest()
    return (int.from_bytes(digest[:6]) + 1) / (1 << 48)
