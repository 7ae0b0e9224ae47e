"""What lessons make of priors. Without Lean."""

from __future__ import annotations

import pytest

from treewright.proving.learning import LearnedPriors, Lesson
from treewright.proving.records import Candidate, GoalView

EQUATION = (GoalView("a = b"),)


def priors(candidates: tuple[Candidate, ...]) -> dict[str, float]:
    return {c.tactic: c.prior or 0.0 for c in candidates}


def test_tactics_that_helped_more_than_their_prior_rise() -> None:
    """`rfl` helps most often, and as often as the rules expect; `rw` more often than that."""
    lessons = [
        Lesson("eq", "rfl", 20, 10, 0.2, 10.0),
        Lesson("eq", "rw []", 20, 5, 0.2, 1.0),
        Lesson("eq", "omega", 20, 0, 0.2, 4.0),
    ]
    given = [Candidate("rfl", 0.5, "core"), Candidate("omega", 0.3), Candidate("rw [x]", 0.2)]
    now = LearnedPriors(lessons).adjust(EQUATION, given)
    assert [c.tactic for c in now] == ["rfl", "rw [x]", "omega"]
    assert now[0].source == "core"
    weights = priors(now)
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["rw [x]"] / weights["rfl"] > 1.5 * 0.2 / 0.5
    assert weights["omega"] / weights["rfl"] < 0.3 / 0.5


def test_expected_help_changes_nothing() -> None:
    lessons = [Lesson("eq", "rfl", 9, 8, 0.2, 4.0), Lesson("eq", "simp", 9, 2, 0.2, 1.0)]
    given = (Candidate("rfl", 0.8), Candidate("simp", 0.2))
    assert priors(LearnedPriors(lessons).adjust(EQUATION, given)) == pytest.approx(priors(given))


def test_a_class_has_its_own_lessons_and_else_those_of_the_shape() -> None:
    lessons = [
        Lesson("eq", "omega", 20, 0, 0.2, 5.0),
        Lesson("order", "omega", 20, 19, 0.2, 5.0),
        Lesson("eq", "rfl", 20, 6, 0.2, 5.0),
    ]
    given = (Candidate("rfl", 0.5), Candidate("omega", 0.5))
    rule = LearnedPriors(lessons)
    of_eq = priors(rule.adjust(EQUATION, given))["omega"]
    of_order = priors(rule.adjust((GoalView("a < b"),), given))["omega"]
    elsewhere = priors(rule.adjust((GoalView("a ∧ b"),), given))["omega"]
    assert of_eq < elsewhere < of_order
    only = LearnedPriors(
        [Lesson("eq", "omega", 20, 0, 0.2, 5.0), Lesson("eq", "rfl", 20, 6, 0.2, 5.0)]
    )
    assert priors(only.adjust((GoalView("a ∧ b"),), given))["omega"] < 0.4


def test_a_factor_has_bounds() -> None:
    lessons = [Lesson("eq", "rfl", 999, 999, 1.0, 0.5), Lesson("eq", "simp", 999, 0, 1.0, 999.0)]
    given = (Candidate("simp", 0.5), Candidate("rfl", 0.5))
    weights = priors(LearnedPriors(lessons).adjust(EQUATION, given))
    assert weights["rfl"] / weights["simp"] == pytest.approx(16.0)


def test_nothing_learned_changes_nothing() -> None:
    given = (Candidate("simp", 0.7), Candidate("rfl", 0.3))
    assert LearnedPriors([]).adjust(EQUATION, given) == given
    assert LearnedPriors([Lesson("eq", "simp", 3, 0, 0.1, 0.5)]).adjust(EQUATION, given) == given
