"""Priors as lessons would have them: what earlier searches solved goals by comes earlier. Pure.

The rules' priors say how often they expect each kind of tactic to solve a goal. Where it did so
more often than that, for the prior it was given, it was given too little. So a candidate's prior is
multiplied by

    (times its shape helped / prior its shape was given, in this class of goals) ^ 0.5

relative to the same of all tactics, between 1/4 and 4; then priors are scaled to the sum they had.
Ratios are smoothed: those of a class by that of the shape, those of a shape by that of all, each as
if so much more prior had been given. What tries cost in seconds is kept and not used: a search is
bounded by counts, and what is slow and strong would come too late.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from treewright.proving.learning import Lesson, class_of, shape_of
from treewright.proving.records import Candidate, GoalView

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
