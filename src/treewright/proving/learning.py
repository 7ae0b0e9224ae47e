"""Lessons: which kinds of tactics solved which kinds of goals in earlier searches. Pure.

A *lesson* counts, for a class of goals and a shape of tactics: how often such a tactic was tried on
a goal that was solved in the end, how often it was the solving tactic, the seconds of these tries,
and the sum of the priors that the rules gave them. Unsolved goals teach nothing, nor do tries that
were lost or cut off. A shape contains no names (`rw [← add_comm]` is `rw [←]`).

A run gets lessons with its settings. `LearnedPriors` adjusts priors by them: a candidate's prior is
multiplied by

    (how often its shape helped / the prior its shape was given, in this class of goals) ^ 0.5

relative to the same ratio of all tactics, between 1/4 and 4. The priors are then scaled to their
former sum. Ratios are smoothed: those of a class by that of the shape, and those of a shape by that
of all tactics, each as if a prior of 1 more had been given. Seconds are recorded and not
used: a search is bounded by counts, and slow but strong tactics would come too late.
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
"""The factor by which each further try reduces the weight of earlier tries."""
MOST_LESSONS = 600

_WORD = re.compile(r"[^\W\d][\w'!?]*")
_MODIFIERS = (  # a text in a tactic, and its modifier in the shape
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
_OUTCOMES_WITHOUT_LESSON = frozenset({"lost", "timeout"})


class Lesson(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The counts for a shape of tactics in a class of goals.

    `prior` is the sum of the priors that the rules gave the tries, before any adjustment.
    """

    goal_class: str
    shape: str
    tried: float
    helped: float
    seconds: float
    prior: float

    def fade(self, newer: Lesson) -> Lesson:
        """Return this lesson with newer tries added, and the weight of the older ones reduced."""
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


def goal_class(goal: GoalView) -> str:
    """Return the class of a goal: the outermost sign of its target, and whether it has facts."""
    kind = shape(flat(goal.target)).kind
    if any(h.name.startswith("ih") for h in goal.hypotheses):
        return f"{kind} ih"
    return f"{kind} facts" if Context(goal).facts else kind


def tactic_shape(tactic: str) -> str:
    """Return a tactic without names and terms: its first word and its modifiers."""
    word = _WORD.match(tactic)
    head = word.group() if word else tactic[:1]
    rest = tactic[len(head) :]
    if head in ("induction", "cases"):  # the alternatives after `with` are not modifiers
        rest = rest.partition(" with ")[0]
    if head == "exact" and " " not in rest.strip():
        return "exact fact"
    return head + "".join(mark for sign, mark in _MODIFIERS if sign in rest)


def lessons_of_search(
    graph: Graph, goals: Callable[[int], Sequence[GoalView]], tries: Iterable[Try]
) -> list[Lesson]:
    """Return the lessons of one search: of the tries on the goals that it solved."""
    counts: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0, 0.0])
    classes: dict[int, str] = {}
    for number, attempt, prior in tries:
        node = graph.nodes[number]
        if node.status is not Status.SOLVED or attempt.outcome in _OUTCOMES_WITHOUT_LESSON:
            continue
        if number not in classes:
            classes[number] = goal_class(goals(number)[0])
        solution = node.solution
        helped = solution is not None and attempt.edge is not None and solution.id == attempt.edge
        row = counts[classes[number], tactic_shape(attempt.tactic)]
        row[0] += 1
        row[1] += helped
        row[2] += attempt.ms / 1000
        row[3] += prior
    return [
        Lesson(*key, tried, helped, round(seconds, 4), round(prior, 6))
        for key, (tried, helped, seconds, prior) in sorted(counts.items())
    ]


def merge_lessons(lessons: Iterable[Lesson], newer: Iterable[Lesson]) -> list[Lesson]:
    """Return the lessons after adding newer ones."""
    known = {(lesson.goal_class, lesson.shape): lesson for lesson in lessons}
    for lesson in newer:
        key = (lesson.goal_class, lesson.shape)
        known[key] = known[key].fade(lesson) if key in known else lesson
    return [known[key] for key in sorted(known)]


def select_lessons(lessons: Iterable[Lesson], most: int = MOST_LESSONS) -> tuple[Lesson, ...]:
    """Return the lessons with the largest counts, in a fixed order."""
    ranked = sorted(lessons, key=lambda x: (-x.helped, -x.tried, x.goal_class, x.shape))[:most]
    return tuple(sorted(ranked, key=lambda lesson: (lesson.goal_class, lesson.shape)))


_CLASS_SMOOTHING, _SHAPE_SMOOTHING = 1.0, 1.0
_POWER = 0.5
_MOST_FACTOR = 4.0


def _scaled(candidates: Sequence[Candidate], weights: Sequence[float]) -> tuple[Candidate, ...]:
    """Return the candidates with the weights as priors, scaled to the sum of the old priors."""
    scale = sum(c.prior or 0.0 for c in candidates) / (sum(weights) or 1.0)
    changed = [
        Candidate(c.tactic, weight * scale, c.source)
        for c, weight in zip(candidates, weights, strict=True)
    ]
    changed.sort(key=lambda candidate: -(candidate.prior or 0.0))
    return tuple(changed)


class LearnedPriors:
    """Adjusts the priors of candidates by lessons."""

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

    def adjust(
        self, goals: Sequence[GoalView], candidates: Sequence[Candidate]
    ) -> tuple[Candidate, ...]:
        """Return the candidates with adjusted priors, best first; the sum of the priors stays."""
        if not self._mean or not candidates:
            return tuple(candidates)
        kind = goal_class(goals[0])
        weights = [
            (c.prior or 0.0) * self._factor(kind, tactic_shape(c.tactic)) for c in candidates
        ]
        return _scaled(candidates, weights)

    def _factor(self, kind: str, shape_of_tactic: str) -> float:
        """Return the factor on the prior of a tactic with this shape, in this class of goals."""
        helped, prior = self._shapes.get(shape_of_tactic, (0.0, 0.0))
        ratio = (helped / self._mean + _SHAPE_SMOOTHING) / (prior + _SHAPE_SMOOTHING)
        own = self._classes.get((kind, shape_of_tactic))
        if own is not None:
            ratio = (own.helped / self._mean + _CLASS_SMOOTHING * ratio) / (
                own.prior + _CLASS_SMOOTHING
            )
        return min(_MOST_FACTOR, max(1 / _MOST_FACTOR, ratio**_POWER))
