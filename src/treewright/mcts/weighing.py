"""Priors as lessons would have them: what earlier searches solved goals by comes earlier. Pure.

The rules' priors say how often they expect each kind of tactic to solve a goal. Where it did so
more often than that, for the prior it was given, it was given too little. So a candidate's prior is
multiplied by

    (times its shape helped / prior its shape was given, in this class of goals) ^ 0.5

relative to the same of all tactics, between 1/4 and 4; then priors are scaled to the sum they had.
Ratios are smoothed: those of a class by that of the shape, those of a shape by that of all, each as
if so much more prior had been given. What tries cost in seconds is kept and not used: a search is
bounded by counts, and what is slow and strong would come too late.

Runs from before priors were part of a lesson are weighed as they were then, by `EarlierRule`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from treewright.mcts.learning import Lesson, class_of, shape_of
from treewright.mcts.records import Candidate, GoalView
from treewright.mcts.sources.shape import flat, shape

_OF_CLASS, _OF_SHAPE = 1.0, 1.0
_POWER = 0.5
_MOST = 4.0


class Learned(Protocol):
    """What lessons make of priors."""

    def weighed(
        self, goals: Sequence[GoalView], candidates: Sequence[Candidate]
    ) -> tuple[Candidate, ...]:
        """The same candidates with other priors, the best first; their sum stays what it was."""
        ...


def learned(lessons: Iterable[Lesson]) -> Learned:
    """By the rule that the lessons are made for."""
    given = tuple(lessons)
    earlier = any(lesson.prior is None for lesson in given)
    return EarlierRule(given) if earlier else ByPrior(given)


def _scaled(candidates: Sequence[Candidate], weights: Sequence[float]) -> tuple[Candidate, ...]:
    scale = sum(c.prior or 0.0 for c in candidates) / (sum(weights) or 1.0)
    changed = [
        Candidate(c.tactic, weight * scale, c.source)
        for c, weight in zip(candidates, weights, strict=True)
    ]
    changed.sort(key=lambda candidate: -(candidate.prior or 0.0))
    return tuple(changed)


class ByPrior:
    """By how often a shape helped for the prior it was given."""

    def __init__(self, lessons: Iterable[Lesson]) -> None:
        self._classes: dict[tuple[str, str], Lesson] = {}
        shapes: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        helped = prior = 0.0
        for lesson in lessons:
            given = lesson.prior or 0.0
            self._classes[lesson.goal_class, lesson.shape] = lesson
            shapes[lesson.shape][0] += lesson.helped
            shapes[lesson.shape][1] += given
            helped += lesson.helped
            prior += given
        self._shapes = dict(shapes)
        self._mean = helped / prior if prior else 0.0

    def weighed(
        self, goals: Sequence[GoalView], candidates: Sequence[Candidate]
    ) -> tuple[Candidate, ...]:
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
            ratio = (own.helped / self._mean + _OF_CLASS * ratio) / ((own.prior or 0.0) + _OF_CLASS)
        return min(_MOST, max(1 / _MOST, ratio**_POWER))


# -- as it was ------------------------------------------------------------------------------

_LEMMA = "∀"
_TRIES_OF_CLASS, _TRIES_OF_SHAPE, _TRIES_OF_LEMMA = 6.0, 4.0, 3.0
_MOST_FOR_A_LEMMA = 2.0
_LEMMA_NAME = re.compile(r"[^\W\d][\w']*(?:[._][\w']+)+")


class EarlierRule:
    """By how often a shape helped for each try, and a lemma by its name: as released first.

    It counted twice what the rules know: what they expect to work has a large prior *and* helps
    often. Only runs that were recorded with it use it.
    """

    def __init__(self, lessons: Iterable[Lesson]) -> None:
        self._classes: dict[tuple[str, str], Lesson] = {}
        self._lemmas: dict[str, Lesson] = {}
        shapes: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
        total, lemmas = [0.0, 0.0], [0.0, 0.0]
        for lesson in lessons:
            if lesson.goal_class == _LEMMA:
                self._lemmas[lesson.shape] = lesson
                counted = (lemmas,)
            else:
                self._classes[lesson.goal_class, lesson.shape] = lesson
                counted = (shapes[lesson.shape], total)
            for count in counted:
                count[0] += lesson.tried
                count[1] += lesson.helped
        self._shapes = dict(shapes)
        self._mean = total[1] / total[0] if total[1] else 0.0
        self._lemma_mean = lemmas[1] / lemmas[0] if lemmas[1] else 0.0

    def weighed(
        self, goals: Sequence[GoalView], candidates: Sequence[Candidate]
    ) -> tuple[Candidate, ...]:
        if not self._mean or not candidates:
            return tuple(candidates)
        goal = goals[0]
        kind = shape(flat(goal.target)).kind
        weights = [
            (c.prior or 0.0)
            * self._factor(kind, shape_of(c.tactic))
            * self._lemma_factor(c.tactic, goal)
            for c in candidates
        ]
        return _scaled(candidates, weights)

    def _factor(self, kind: str, of: str) -> float:
        tried, helped = self._shapes.get(of, (0.0, 0.0))
        rate = (helped + _TRIES_OF_SHAPE * self._mean) / (tried + _TRIES_OF_SHAPE)
        own = self._classes.get((kind, of))
        if own is not None:
            rate = (own.helped + _TRIES_OF_CLASS * rate) / (own.tried + _TRIES_OF_CLASS)
        return min(_MOST, max(1 / _MOST, (rate / self._mean) ** _POWER))

    def _lemma_factor(self, tactic: str, goal: GoalView) -> float:
        """By the best of the lemmas in a tactic. One that failed here may be needed there."""
        known = [self._lemmas[n] for n in lemmas_in(tactic, goal) if n in self._lemmas]
        if not known or not self._lemma_mean:
            return 1.0
        mean = self._lemma_mean
        best = max((x.helped + _TRIES_OF_LEMMA * mean) / (x.tried + _TRIES_OF_LEMMA) for x in known)
        return min(_MOST_FOR_A_LEMMA, max(1.0, best / mean))


def lemmas_in(tactic: str, goal: GoalView) -> list[str]:
    """Names in a tactic that look like a lemma's and are none of the goal's own."""
    own = {h.name for h in goal.hypotheses}
    found = _LEMMA_NAME.findall(tactic)
    return [n for n in dict.fromkeys(found) if n not in own and n.partition(".")[0] not in own]
