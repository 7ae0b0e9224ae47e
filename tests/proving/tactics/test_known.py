"""Tactics from what Lean knows about a goal."""

from __future__ import annotations

import pytest

from treewright.lean.session.answers import Hypothesis
from treewright.lean.session.knowledge import Alternative, Field, Knowledge, MadeOf, Use, Variable
from treewright.proving.records import GoalView
from treewright.proving.tactics.known_lemmas import KnownTactics

GOAL = GoalView("a + b = b + a", (Hypothesis("a", "N"), Hypothesis("b", "N")))
NUMBER = MadeOf(
    "N",
    (Alternative("zero"), Alternative("succ", (Field("n"), Field("n_ih", hypothesis=True)))),
    recursive=True,
)


def tactics(knowledge: Knowledge, goal: GoalView = GOAL, round_number: int = 0) -> list[str]:
    found = KnownTactics().suggest((goal,), knowledge, round_number)
    priors = [c.prior or 0.0 for c in found.candidates]
    assert priors == sorted(priors, reverse=True)
    assert all(prior > 0 for prior in priors)
    return [candidate.tactic for candidate in found.candidates]


def test_nothing_known_proposes_nothing() -> None:
    assert tactics(Knowledge()) == []


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (Use("comm", "exact", ("a", "b"), fit=9), "exact comm a b"),
        (Use("comm", "symm", ("b", "a"), fit=9), "exact (comm b a).symm"),
        (Use("comm", "rw", ("a", "b"), fit=9), "rw [comm]"),
        (Use("comm", "rw", ("b", "_"), fit=9, nth=1), "rw [comm b]"),
        (Use("comm", "rw", ("a", "b"), fit=9, back=True), "rw [← comm]"),
        (Use("comm", "rw", ("a", "b"), fit=9, at="h"), "rw [comm] at h"),
        (Use("no", "elim", ("h",), met=1), "exact (no h).elim"),
        (Use("le_trans", "exact", ("_", "h"), fit=4, met=1, unmet=1), "refine le_trans ?_ h"),
        (Use("foo", "mpr", ("a",), fit=4), "refine (foo a).mpr ?_"),
        (Use("comm", "exact", ("a",), fit=9, wrap="⟨_, %⟩"), "exact ⟨_, comm a⟩"),
        (Use("pos", "forward", ("a", "h"), gives="Exists ="), "obtain ⟨k, rfl⟩ := pos a h"),
        (Use("or", "forward", ("h",), gives="Or"), "rcases or h with h | h"),
        (Use("pos", "forward", ("a", "h")), "have h := pos a h"),
    ],
)
def test_a_use_becomes_a_tactic(use: Use, expected: str) -> None:
    assert expected in tactics(Knowledge(uses=(use,)))


def test_fitting_lemmas_go_to_simp_and_grind_together() -> None:
    uses = (Use("one", "rw", fit=4), Use("two", "rw", fit=3), Use("three", "rw", fit=3, back=True))
    found = tactics(Knowledge(uses=uses, definitions=("N.add",)))
    assert "simp [one, two]" in found
    assert "simp [N.add]" in found
    assert any(t.startswith("grind") and t.endswith("[N.add, one, two]") for t in found)


ADDING = (
    Use("comm", "rw", fit=4, law="comm HAdd.hAdd N"),
    Use("assoc", "rw", fit=4, back=True, law="assoc HAdd.hAdd N"),
)


def test_both_sides_are_brought_into_one_order_where_the_operation_allows_it() -> None:
    rearranged = "have := Std.Associative.mk assoc\nhave := Std.Commutative.mk comm\nac_rfl"
    assert rearranged in tactics(Knowledge(uses=ADDING))
    assert rearranged not in tactics(Knowledge(uses=ADDING), GoalView("P a", GOAL.hypotheses))
    other = Use("other", "rw", fit=4, law="comm HMul.hMul N")
    assert not any("ac_rfl" in t for t in tactics(Knowledge(uses=(other, ADDING[1]))))


def test_a_lemma_is_tried_alone_with_the_induction_hypothesis() -> None:
    uses = (ADDING[0], Use("succ", "rw", fit=4), Use("undo", "rw", fit=2))
    goal = GoalView("a + b = b + a", (*GOAL.hypotheses, Hypothesis("ih", "a + c = c + a")))
    found = tactics(Knowledge(uses=uses), goal)
    assert "simp only [succ, ih]" in found
    assert "simp only [comm, ih]" not in found, "that only changes an order"
    assert not any(t.startswith("simp only") for t in tactics(Knowledge(uses=uses)))


def test_grind_gets_reordering_lemmas_last() -> None:
    others = tuple(Use(name, "rw", fit=2) for name in "vwxyz")
    found = tactics(Knowledge(uses=(*ADDING, *others), related=("related",)))
    sets = [t for t in found if t.startswith("grind")]
    assert sets[0].endswith("[v, w, x, y, z]")
    # It comes before the larger set: a lemma about the same terms helps more than another order.
    assert sets[1].endswith("[v, w, x, y, z, related]")


def test_rewriting_a_hypothesis_by_the_library_is_tried_early() -> None:
    iff = Use("mul_self_inj", "rw", fit=10, at="h", whole=True, local=False)
    part = Use("mul_comm", "rw", fit=10, at="h", local=False)
    found = tactics(Knowledge(library=(part, iff)))
    assert found.index("rw [mul_self_inj] at h") < found.index("rw [mul_comm] at h")


def test_induction_names_its_cases_and_hides_nothing() -> None:
    variables = (
        Variable("a", "data", shown=True, made_of=NUMBER),
        Variable("b", "data", shown=True, made_of=NUMBER),
    )
    goal = GoalView("a + b = ih", (*GOAL.hypotheses, Hypothesis("ih", "N")))
    found = tactics(Knowledge(variables=variables), goal)
    assert "induction b with | zero => ?_ | succ b ih1 => ?_" in found
    assert "induction a generalizing b with | zero => ?_ | succ a ih1 => ?_" in found


def test_values_of_user_types_are_generalized_in_list_induction() -> None:
    """`(q.pushAll xs).toList = q.toList ++ xs`: the induction is on xs, and for every q."""
    cells = (
        Alternative("nil"),
        Alternative("cons", (Field("x"), Field("xs"), Field("xs_ih", True))),
    )
    queue = MadeOf("Queue", (Alternative("mk", (Field("front"), Field("back"))),))
    variables = (
        Variable("q", "data", shown=True, made_of=queue),
        Variable("xs", "data", shown=True, made_of=MadeOf("List", cells, recursive=True)),
    )
    goal = GoalView("q.all xs = xs", (Hypothesis("q", "Queue"), Hypothesis("xs", "List Nat")))
    found = tactics(Knowledge(variables=variables), goal)
    assert "induction xs generalizing q with | nil => ?_ | cons x xs ih => ?_" in found


def test_a_proof_that_cannot_be_is_taken_apart_first() -> None:
    never = Variable("h", "proof", made_of=MadeOf("Never", ()))
    assert tactics(Knowledge(variables=(never,)))[0] == "cases h"


def test_a_lemma_with_an_invalid_name_is_left_out() -> None:
    uses = (Use("x := by sorry", "exact", fit=9), Use("sorryAx", "exact", ("_",), fit=9))
    assert tactics(Knowledge(uses=uses)) == []


def test_later_rounds_end() -> None:
    source = KnownTactics()
    knowledge = Knowledge(uses=(Use("comm", "exact", fit=9),))
    assert source.suggest((GOAL,), knowledge, 1).complete
    assert source.suggest((GOAL,), knowledge, 2).candidates == ()
