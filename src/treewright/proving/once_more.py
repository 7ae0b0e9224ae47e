"""When a script rests on what is not proved: the search once more, without those names.

A lemma that is still a `sorry` may be built on, for it may be proved in the same run. Where it was
not, what was built on it is no proof, and the goal is searched again with nothing that names it.
A phase of its own, as the search for the negation is: by the runner of the run's mode, bounded by
a count, in the trace line by line. Whether a script holds, only the replay check says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from treewright.lean.session.knowledge import Knowledge
from treewright.proving.phases import PhaseSink, phase_recording
from treewright.proving.records import (
    AgainOpened,
    AgainTurn,
    Candidate,
    GoalOpened,
    GoalView,
    TraceLine,
)
from treewright.proving.search import Limits, Sink
from treewright.proving.settings import Settings
from treewright.proving.tactics.source import Suggestions, TacticSource, stop_when
from treewright.proving.trace import Recording

_NAME = re.compile(r"[^\W\d][\w'!?]*(?:\.[^\W\d][\w'!?]*)*")


def again_limits(settings: Settings, simulations: int, seconds: float = 0.0) -> Limits:
    """What is left of the goal's limits after `simulations` and `seconds` of other searches."""
    time = settings.time_limit
    left = None if time is None else max(0.0, time - seconds)
    return Limits(max(0, settings.simulations - simulations), left)


# -- names ----------------------------------------------------------------------------------


def words_of(script: str) -> list[str]:
    """Everything in a script that could be a name, once."""
    return list(dict.fromkeys(_NAME.findall(script)))


def named_in(script: str, names: Iterable[str], local: Iterable[str] = ()) -> list[str]:
    """Which of some declarations a script names; `local` are hypotheses, which hide others."""
    hidden = set(local)
    words = [word for word in words_of(script) if word not in hidden]
    return [name for name in names if any(_means(word, name) for word in words)]


def _means(word: str, name: str) -> bool:
    """`append_nil` or `List.append_nil` for that; `xs.append_nil` where `xs` is some value."""
    if name == word or name.endswith(f".{word}"):
        return True
    value, dot, last = word.rpartition(".")
    is_value = bool(dot) and "." not in value and not value[0].isupper()
    return is_value and name.endswith(f".{last}")


# -- what is proposed -----------------------------------------------------------------------


class WithoutNames:
    """A tactic source without what names some declarations."""

    name = "without"

    def __init__(self, source: TacticSource, names: Sequence[str]) -> None:
        self._source = source
        self._names = tuple(names)
        self.overlaps = bool(getattr(source, "overlaps", False))

    def stop_when(self, stop: Callable[[], bool]) -> None:
        stop_when(self._source, stop)

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        answer = self._source.suggest(goals, round_number)
        local = {h.name for h in goals[0].hypotheses} if goals else set[str]()

        def is_free(candidate: Candidate) -> bool:
            return not named_in(candidate.tactic, self._names, local)

        return Suggestions(tuple(filter(is_free, answer.candidates)), answer.complete)


def known_without(
    known: Callable[[int], Knowledge], names: Sequence[str]
) -> Callable[[int], Knowledge]:
    """What Lean knows about a node without some declarations: sets of lemmas are made of the rest,
    where a filter behind it would lose the whole set."""

    def is_free(name: str) -> bool:
        return not named_in(name, names)

    def less(node: int) -> Knowledge:
        found = known(node)
        return msgspec.structs.replace(
            found,
            uses=tuple(use for use in found.uses if is_free(use.name)),
            library=tuple(use for use in found.library if is_free(use.name)),
            related=tuple(filter(is_free, found.related)),
            definitions=tuple(filter(is_free, found.definitions)),
        )

    return less


# -- the trace ------------------------------------------------------------------------------


def again_opened(goal: int, lines: Iterable[TraceLine]) -> AgainOpened | None:
    """How the search once more for a goal began, if it did."""
    found = (line for line in lines if isinstance(line, AgainOpened) and line.goal == goal)
    return next(found, None)


def again_recording(goal: int, lines: Iterable[TraceLine]) -> Recording:
    """What a trace knows of the search once more for a goal."""
    return phase_recording(goal, lines, AgainOpened, AgainTurn)


def again_sink(sink: Sink, simulations: int, without: tuple[str, ...]) -> PhaseSink:
    """Writes the lines of a search as those of a search once more."""

    def opened(line: GoalOpened) -> AgainOpened:
        return AgainOpened(
            line.epoch, line.at, line.goal, line.name, line.statement, simulations, without,
            line.root,
        )  # fmt: skip

    return PhaseSink(sink, opened, AgainTurn)
