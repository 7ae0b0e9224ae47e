"""What earlier searches teach the next: which kinds of tactics solved which kinds of goals. Pure.

A *lesson* counts, for a class of goals and a shape of tactics, how often such a tactic was tried on
a goal that was solved in the end, how often it was the one that solved it, and the seconds these
tries took. Goals that nobody solved teach nothing, nor do tries that were lost or cut off. Shapes
have no names in them (`rw [← add_comm]` is `rw [←]`); lemmas have lessons of their own, under `∀`.

A run is given lessons as part of its settings. For each candidate they make a factor

    (rate of its shape in this class / mean rate) ^ 0.5

between 1/4 and 4, by which its prior is multiplied, and up to 2 for a lemma that helped more often
than others; then priors are scaled to the sum they had. What tries cost is kept and not used: a
search is bounded by counts, and what is slow and strong would come too late. Rates are smoothed: a
class by its shape, as if that were 6 tries, a shape by the mean of all, as 4.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from treewright.mcts.records import Attempt, Candidate, GoalView
from treewright.mcts.sources.shape import flat, shape
from treewright.search.andor.graph import Graph, Status

LEMMA = "∀"
"""The class under which lessons about lemmas stand, with their names for shapes."""
FADING = 0.995
"""What a further try leaves of the weight of earlier ones."""
MOST_LESSONS = 600
_OF_CLASS, _OF_SHAPE, _OF_LEMMA = 6.0, 4.0, 3.0
_POWER = 0.5
_MOST = 4.0
_MOST_FOR_A_LEMMA = 2.0
_LONGEST_NAME = 200

_WORD = re.compile(r"[^\W\d][\w'!?]*")
_LEMMA_NAME = re.compile(r"[^\W\d][\w']*(?:[._][\w']+)+")
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
    """What is known of a shape of tactics in a class of goals."""

    goal_class: str
    shape: str
    tried: float
    helped: float
    seconds: float

    def fading(self, newer: Lesson) -> Lesson:
        """With newer tries, before which older ones lose weight."""
        kept = FADING**newer.tried
        return Lesson(
            self.goal_class,
            self.shape,
            round(kept * self.tried + newer.tried, 4),
            round(kept * self.helped + newer.helped, 4),
            round(kept * self.seconds + newer.seconds, 4),
        )


def class_of(goal: GoalView) -> str:
    """The class of a goal: the outermost sign of its target."""
    return shape(flat(goal.target)).kind


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


def lemmas_in(tactic: str, goal: GoalView) -> list[str]:
    """Names in a tactic that look like a lemma's and are none of the goal's own."""
    own = {h.name for h in goal.hypotheses}
    found = _LEMMA_NAME.findall(tactic)
    return [n for n in dict.fromkeys(found) if n not in own and n.partition(".")[0] not in own]


def observed(
    graph: Graph,
    goals: Callable[[int], Sequence[GoalView]],
    tries: Iterable[tuple[int, Attempt]],
) -> list[Lesson]:
    """The lessons of one search: of its tries, by node, on goals that it solved."""
    counts: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for number, attempt in tries:
        node = graph.nodes[number]
        if node.status is not Status.SOLVED or attempt.outcome in _UNKNOWN:
            continue
        goal = goals(number)[0]
        solution = node.solution
        helped = solution is not None and attempt.edge is not None and solution.id == attempt.edge
        keys = [(class_of(goal), shape_of(attempt.tactic))]
        keys += [
            (LEMMA, name) for name in lemmas_in(attempt.tactic, goal) if len(name) <= _LONGEST_NAME
        ]
        for key in keys:
            row = counts[key]
            row[0] += 1
            row[1] += helped
            row[2] += attempt.ms / 1000
    return [Lesson(*key, *(round(x, 4) for x in row)) for key, row in sorted(counts.items())]


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


@dataclass(frozen=True, slots=True)
class _Rate:
    tried: float = 0.0
    helped: float = 0.0

    def plus(self, lesson: Lesson) -> _Rate:
        return _Rate(self.tried + lesson.tried, self.helped + lesson.helped)


class Learned:
    """Priors as lessons would have them."""

    def __init__(self, lessons: Iterable[Lesson]) -> None:
        self._classes: dict[tuple[str, str], Lesson] = {}
        self._lemmas: dict[str, Lesson] = {}
        shapes: dict[str, _Rate] = defaultdict(_Rate)
        total, lemmas = _Rate(), _Rate()
        for lesson in lessons:
            if lesson.goal_class == LEMMA:
                self._lemmas[lesson.shape] = lesson
                lemmas = lemmas.plus(lesson)
                continue
            self._classes[lesson.goal_class, lesson.shape] = lesson
            shapes[lesson.shape] = shapes[lesson.shape].plus(lesson)
            total = total.plus(lesson)
        self._shapes = dict(shapes)
        self._mean = total.helped / total.tried if total.helped else 0.0
        self._lemma_mean = lemmas.helped / lemmas.tried if lemmas.helped else 0.0

    def weighed(
        self, goals: Sequence[GoalView], candidates: Sequence[Candidate]
    ) -> tuple[Candidate, ...]:
        """The same candidates with other priors, the best first; their sum stays what it was."""
        if not self._mean or not candidates:
            return tuple(candidates)
        goal = goals[0]
        kind = class_of(goal)
        given = [candidate.prior or 0.0 for candidate in candidates]
        weights = [
            prior * self._factor(kind, shape_of(c.tactic)) * self._lemma_factor(c.tactic, goal)
            for prior, c in zip(given, candidates, strict=True)
        ]
        scale = sum(given) / (sum(weights) or 1.0)
        changed = [
            Candidate(c.tactic, weight * scale, c.source)
            for c, weight in zip(candidates, weights, strict=True)
        ]
        changed.sort(key=lambda candidate: -(candidate.prior or 0.0))
        return tuple(changed)

    def _factor(self, kind: str, of: str) -> float:
        general = self._shapes.get(of, _Rate())
        rate = (general.helped + _OF_SHAPE * self._mean) / (general.tried + _OF_SHAPE)
        own = self._classes.get((kind, of))
        if own is not None:
            rate = (own.helped + _OF_CLASS * rate) / (own.tried + _OF_CLASS)
        return min(_MOST, max(1 / _MOST, (rate / self._mean) ** _POWER))

    def _lemma_factor(self, tactic: str, goal: GoalView) -> float:
        """By the best of the lemmas in a tactic. One that failed here may be needed there."""
        known = [self._lemmas[n] for n in lemmas_in(tactic, goal) if n in self._lemmas]
        if not known or not self._lemma_mean:
            return 1.0
        mean = self._lemma_mean
        best = max((x.helped + _OF_LEMMA * mean) / (x.tried + _OF_LEMMA) for x in known)
        return min(_MOST_FOR_A_LEMMA, max(1.0, best / mean))
