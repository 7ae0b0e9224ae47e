"""What earlier searches teach the next: which kinds of tactics solved which kinds of goals. Pure.

A *lesson* counts, for a class of goals and a shape of tactics, how often such a tactic was tried on
a goal that was solved in the end, how often it was the one that solved it, the seconds these tries
took, and the prior that the rules had given them. Goals that nobody solved teach nothing, nor do
tries that were lost or cut off. Shapes have no names in them (`rw [← add_comm]` is `rw [←]`).

A run is given lessons as part of its settings; `weighing` says what it makes of them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from treewright.proving.records import Attempt, Candidate, GoalView
from treewright.proving.tactics.goal_outline import Context, flat, shape
from treewright.search.andor.graph import Graph, Status

FADING = 0.995
"""What a further try leaves of the weight of earlier ones."""
MOST_LESSONS = 600

_WORD = re.compile(r"[^\W\d][\w'!?]*")
_MARKS = (
    ("⟨", " ⟨⟩"),
    ("[", " []"),
    ("←", " ←"),
    (" at ", " at"),
    ("generalizing", " generalizing"),
    ("(gen :=", " brief"),
    ("+arith", " +arith"),
    (".symm", " symm"),
    (".elim", " elim"),
)
_UNKNOWN = frozenset({"lost", "timeout"})


class Lesson(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is known of a shape of tactics in a class of goals.

    `prior` is the sum of what the rules gave the tries, before any lessons.
    """

    goal_class: str
    shape: str
    tried: float
    helped: float
    seconds: float
    prior: float

    def fading(self, newer: Lesson) -> Lesson:
        """With newer tries, before which older ones lose weight."""
        kept = FADING**newer.tried
        return Lesson(
            self.goal_class,
            self.shape,
            round(kept * self.tried + newer.tried, 4),
            round(kept * self.helped + newer.helped, 4),
            round(kept * self.seconds + newer.seconds, 4),
            round(kept * self.prior + newer.prior, 6),
        )


class Try(NamedTuple):
    """A tactic tried at a node, and the prior that the rules gave it there."""

    node: int
    attempt: Attempt
    prior: float


def class_of(goal: GoalView) -> str:
    """The class of a goal: the outermost sign of its target, and what there is to work with."""
    kind = shape(flat(goal.target)).kind
    if any(h.name.startswith("ih") for h in goal.hypotheses):
        return f"{kind} ih"
    return f"{kind} facts" if Context(goal).facts else kind


def shape_of(tactic: str) -> str:
    """A tactic without names and terms: its first word, and what it is told to do."""
    word = _WORD.match(tactic)
    head = word.group() if word else tactic[:1]
    rest = tactic[len(head) :]
    if head in ("induction", "cases"):  # alternatives are how, not what
        rest = rest.partition(" with ")[0]
    if head == "exact" and " " not in rest.strip():
        return "exact fact"
    return head + "".join(mark for sign, mark in _MARKS if sign in rest)


def observed(
    graph: Graph, goals: Callable[[int], Sequence[GoalView]], tries: Iterable[Try]
) -> list[Lesson]:
    """The lessons of one search: of its tries, by node, on goals that it solved."""
    counts: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    classes: dict[int, str] = {}
    for number, attempt, prior in tries:
        node = graph.nodes[number]
        if node.status is not Status.SOLVED or attempt.outcome in _UNKNOWN:
            continue
        if number not in classes:
            classes[number] = class_of(goals(number)[0])
        solution = node.solution
        helped = solution is not None and attempt.edge is not None and solution.id == attempt.edge
        row = counts[classes[number], shape_of(attempt.tactic)]
        row[0] += 1
        row[1] += helped
        row[2] += attempt.ms / 1000
        row[3] += prior
    return [
        Lesson(*key, tried, helped, round(seconds, 4), round(prior, 6))
        for key, (tried, helped, seconds, prior) in sorted(counts.items())
    ]


def together(lessons: Iterable[Lesson], newer: Iterable[Lesson]) -> list[Lesson]:
    """What is known after newer lessons."""
    known = {(lesson.goal_class, lesson.shape): lesson for lesson in lessons}
    for lesson in newer:
        key = (lesson.goal_class, lesson.shape)
        known[key] = known[key].fading(lesson) if key in known else lesson
    return [known[key] for key in sorted(known)]


def worth_keeping(lessons: Iterable[Lesson], most: int = MOST_LESSONS) -> tuple[Lesson, ...]:
    """The lessons with most behind them, in a fixed order: what a run is given."""
    ranked = sorted(lessons, key=lambda x: (-x.helped, -x.tried, x.goal_class, x.shape))[:most]
    return tuple(sorted(ranked, key=lambda lesson: (lesson.goal_class, lesson.shape)))


_OF_CLASS, _OF_SHAPE = 1.0, 1.0
_POWER = 0.5
_MOST = 4.0


def _scaled(candidates: Sequence[Candidate], weights: Sequence[float]) -> tuple[Candidate, ...]:
    scale = sum(c.prior or 0.0 for c in candidates) / (sum(weights) or 1.0)
    changed = [
        Candidate(c.tactic, weight * scale, c.source)
        for c, weight in zip(candidates, weights, strict=True)
    ]
    changed.sort(key=lambda candidate: -(candidate.prior or 0.0))
    return tuple(changed)


class Learned:
    """What lessons make of priors: by how often a shape helped for the prior it was given."""

    def __init__(self, lessons: Iterable[Lesson]) -> None:
        self._classes: dict[tuple[str, str], Lesson] = {}
        shapes: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        helped = prior = 0.0
        for lesson in lessons:
            self._classes[lesson.goal_class, lesson.shape] = lesson
            shapes[lesson.shape][0] += lesson.helped
            shapes[lesson.shape][1] += lesson.prior
            helped += lesson.helped
            prior += lesson.prior
        self._shapes = dict(shapes)
        self._mean = helped / prior if prior else 0.0

    def weighed(
        self, goals: Sequence[GoalView], candidates: Sequence[Candidate]
    ) -> tuple[Candidate, ...]:
        """The same candidates with other priors, the best first; their sum stays what it was."""
        if not self._mean or not candidates:
            return tuple(candidates)
        kind = class_of(goals[0])
        weights = [(c.prior or 0.0) * self._factor(kind, shape_of(c.tactic)) for c in candidates]
        return _scaled(candidates, weights)

    def _factor(self, kind: str, of: str) -> float:
        helped, prior = self._shapes.get(of, (0.0, 0.0))
        ratio = (helped / self._mean + _OF_SHAPE) / (prior + _OF_SHAPE)
        own = self._classes.get((kind, of))
        if own is not None:
            ratio = (own.helped / self._mean + _OF_CLASS * ratio) / (own.prior + _OF_CLASS)
        return min(_MOST, max(1 / _MOST, ratio**_POWER))
