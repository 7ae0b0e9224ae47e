"""When a goal was not proved: perhaps it is false. The search for its negation.

A phase of its own, by the runner of the run's mode: cells that are blocked there are blocked here.
It is bounded by a count and stands in the trace line by line, so that it is continued and
replayed like the search for a proof. Only a replayed proof of the negation counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from treewright.mcts.phases import PhaseSink, phase_recording
from treewright.mcts.recording import Recording
from treewright.mcts.records import GoalOpened, NegationOpened, NegationTurn, TraceLine
from treewright.mcts.search import Limits, Sink
from treewright.mcts.settings import Settings

MOST_SIMULATIONS = 40


def negation_limits(settings: Settings) -> Limits:
    """As many simulations as a proof may have, but not many; the user's time limit holds too."""
    return Limits(min(MOST_SIMULATIONS, settings.simulations), settings.time_limit)


def negation_recording(goal: int, lines: Iterable[TraceLine]) -> Recording:
    """What a trace knows of the search for a goal's negation."""
    return phase_recording(goal, lines, NegationOpened, NegationTurn)


def negation_sink(sink: Sink, simulations: int) -> PhaseSink:
    """Writes the lines of a search as those of a search for a negation."""

    def opened(line: GoalOpened) -> NegationOpened:
        return NegationOpened(
            line.epoch, line.at, line.goal, line.name, line.statement, simulations, line.root
        )

    return PhaseSink(sink, opened, NegationTurn)
