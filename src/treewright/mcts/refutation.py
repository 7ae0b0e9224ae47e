"""When a goal was not proved: perhaps it is false. The search for its negation.

A phase of its own, by the runner of the run's mode: cells that are blocked there are blocked here.
It is bounded by a count and stands in the trace line by line, so that it is continued and
replayed like the search for a proof. Only a replayed proof of the negation counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from treewright.mcts.recording import Recording
from treewright.mcts.records import (
    GoalOpened,
    Iteration,
    NegationOpened,
    NegationTurn,
    TraceLine,
)
from treewright.mcts.search import Limits, Sink
from treewright.mcts.settings import Settings

MOST_SIMULATIONS = 40


def negation_limits(settings: Settings) -> Limits:
    """As many simulations as a proof may have, but not many; the user's time limit holds too."""
    return Limits(min(MOST_SIMULATIONS, settings.simulations), settings.time_limit)


def negation_recording(goal: int, lines: Iterable[TraceLine]) -> Recording:
    """What a trace knows of the search for a goal's negation."""
    return Recording(goal, _unwrapped(lines))


def _unwrapped(lines: Iterable[TraceLine]) -> Iterator[TraceLine]:
    for line in lines:
        if isinstance(line, NegationTurn):
            yield line.turn
        elif isinstance(line, NegationOpened):
            yield GoalOpened(line.epoch, line.at, line.goal, line.name, line.statement, line.root)


class NegationSink:
    """Writes the lines of a search as those of a search for a negation."""

    def __init__(self, sink: Sink, simulations: int) -> None:
        self._sink = sink
        self._simulations = simulations

    @property
    def epoch(self) -> int:
        return self._sink.epoch

    def append(self, lines: list[TraceLine]) -> None:
        self._sink.append([self._wrapped(line) for line in lines])

    def _wrapped(self, line: TraceLine) -> TraceLine:
        if isinstance(line, Iteration):
            return NegationTurn(line.epoch, line.at, line.goal, line)
        assert isinstance(line, GoalOpened)
        return NegationOpened(
            line.epoch, line.at, line.goal, line.name, line.statement, self._simulations, line.root
        )
