"""The interface of a tactic source, and what holds the candidates of one node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
