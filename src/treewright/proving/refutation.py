"""The search for the negation of a goal, which may be false.

It begins early: after `PROOF_SHARE` simulations without a proof the negation gets `NEGATION_SHARE`
simulations, then the search for the proof goes on. If that ends without a proof, the search for the
negation continues to its own limit. The two take turns by counts alone, so that a run is continued
and replayed with the same turns.

The search is a phase of its own, by the runner of the run's mode: cells that are blocked there are
blocked here. The trace has it line by line. Only a replayed proof of the negation counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from treewright.proving.phases import PhaseSink, phase_recording
from treewright.proving.records import (
    GoalOpened,
    Iteration,
    NegationOpened,
    NegationTurn,
    TraceLine,
)
from treewright.proving.search import Limits, Sink
from treewright.proving.settings import Settings
from treewright.proving.trace import Recording

MOST_SIMULATIONS = 40
PROOF_SHARE = 10
"""Simulations of the search for a proof before the negation is searched for the first time."""
NEGATION_SHARE = 8
"""Simulations that the search for the negation has then."""


def negation_limits(settings: Settings) -> Limits:
    """As many simulations as a proof may have, but not many; the user's time limit holds too."""
    return Limits(min(MOST_SIMULATIONS, settings.simulations), settings.time_limit)


def order_of_turns(lines: Iterable[TraceLine]) -> str:
    """Where the turns of the two searches of a goal stand in another order; '' if nowhere.

    The first part may be missing where the negation was searched for an earlier goal: for another
    `sorry` of the same declaration.
    """
    proof, negation = Counter[int](), Counter[int]()
    passed: set[int] = set()
    for line in lines:
        goal = line.goal
        wrong = False
        if isinstance(line, NegationTurn):
            wrong = goal in passed
            negation[goal] += 1
        elif isinstance(line, Iteration):
            proof[goal] += 1
            has_had_share = proof[goal] > PROOF_SHARE
            wrong = negation[goal] > (NEGATION_SHARE if has_had_share else 0)
            if has_had_share and not negation.total():
                passed.add(goal)
        if wrong:
            return f"goal {goal}: the searches for it and its negation are in the wrong order"
    return ""


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
