"""A search that is a later phase of a goal: its lines in the trace, told from the first ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from treewright.proving.records import (
    AgainOpened,
    AgainTurn,
    GoalOpened,
    Iteration,
    NegationOpened,
    NegationTurn,
    TraceLine,
)
from treewright.proving.search import Sink
from treewright.proving.trace import Recording

PhaseOpened = NegationOpened | AgainOpened
PhaseTurn = NegationTurn | AgainTurn


def phase_recording(
    goal: int, lines: Iterable[TraceLine], opened: type[PhaseOpened], turn: type[PhaseTurn]
) -> Recording:
    """What a trace knows of one phase of a goal, as if that were all."""
    return Recording(goal, _unwrapped(lines, opened, turn))


def _unwrapped(
    lines: Iterable[TraceLine], opened: type[PhaseOpened], turn: type[PhaseTurn]
) -> Iterator[TraceLine]:
    for line in lines:
        if isinstance(line, turn):
            yield line.turn
        elif isinstance(line, opened):
            yield GoalOpened(line.epoch, line.at, line.goal, line.name, line.statement, line.root)


class PhaseSink:
    """Writes the lines of a search as those of a phase."""

    def __init__(
        self, sink: Sink, opened: Callable[[GoalOpened], PhaseOpened], turn: type[PhaseTurn]
    ) -> None:
        self._sink = sink
        self._opened = opened
        self._turn = turn

    @property
    def epoch(self) -> int:
        return self._sink.epoch

    def append(self, lines: list[TraceLine]) -> None:
        self._sink.append([self._wrapped(line) for line in lines])

    def _wrapped(self, line: TraceLine) -> TraceLine:
        if isinstance(line, Iteration):
            return self._turn(line.epoch, line.at, line.goal, line)
        assert isinstance(line, GoalOpened)
        return self._opened(line)
