"""What searches teach: shapes and classes, counting, and the priors it makes. Without Lean."""

from __future__ import annotations

import pytest

from tests.mcts.synthetic import world_expander
from treewright.lean.types import Hypothesis
from treewright.mcts import learning
from treewright.mcts.learning import Learned, Lesson
from treewright.mcts.records import Attempt, Candidate, GoalView
from treewright.search.andor.graph import Changes, Child, Graph


@pytest.mark.parametrize(
    ("tactic", "shape"),
    [
        ("rw [← Nat.add_comm]", "rw [] ←"),
        ("rw [h] at h'", "rw [] at"),
        ("simp", "simp"),
        ("simp_all [foo, bar]", "simp_all []"),
        ("grind (gen := 4) (ematch := 3) (instances := 100) [a]", "grind [] brief"),
        ("exact h", "exact fact"),
        ("exact foo a b", "exact"),
        ("exact (foo a).symm", "exact symm"),
        ("exact ⟨_, rfl⟩", "exact ⟨⟩"),
        ("induction n with | zero => ?_ | succ n ih => ?_", "induction"),
        (
            "induction n generalizing m with | zero => ?_ | succ n ih => ?_",
            "induction generalizing",
        ),
        ("· simp", "·"),
    ],
)
def test_shapes_have_no_names(tactic: str, shape: str) -> None:
    assert learning.shape_of(tactic) == shape


def test_classes_are_outermost_signs() -> None:
    assert learning.class_of(GoalView("∀ n, n = n")) == "forall"
    assert learning.class_of(GoalView("a ∧ b = c")) == "and"
    assert learning.class_of(GoalView("Even\n  n")) == "other"


def test_lemmas_are_told_from_what_the_goal_has() -> None:
    goal = GoalView("p", (Hypothesis("h_one", "p", None, True), Hypothesis("h", "p", None, True)))
    tactic = "simp [Nat.add_comm, h_one, mul_assoc, h.1, ih]"
    assert learning.lemmas_in(tactic, goal) == ["Nat.add_comm", "mul_assoc"]


def searched() -> tuple[Graph, dict[int, tuple[GoalView, ...]], list[tuple[int, Attempt]]]:
    """A root that `rw` and then `rfl` solve; `omega` fails there, and a side way stays open."""
    graph = Graph("root", 0.5)
    changes = Changes()
    way = graph.add_edge(graph.nodes[0], "rw [a_b]", 0.5, [Child("next", 0.5)], changes)
    other = graph.add_edge(graph.nodes[0], "left", 0.5, [Child("open", 0.5)], changes)
    assert way is not None
    assert other is not None
    closing = graph.add_edge(way.children[0], "rfl", 0.5, [], changes)
    assert closing is not None
    goals = {number: (GoalView("a = b"),) for number in range(3)}
    tries = [
        (0, Attempt("omega", "error", 2000.0)),
        (0, Attempt("grind", "timeout", 5000.0)),
        (0, Attempt("rw [a_b]", "goals", 100.0, way.id)),
        (0, Attempt("left", "goals", 100.0, other.id)),
        (other.children[0].id, Attempt("simp", "error", 50.0)),
        (way.children[0].id, Attempt("rfl", "closed", 50.0, closing.id)),
    ]
    return graph, goals, tries


def test_only_solved_goals_teach_and_only_what_ended() -> None:
    graph, goals, tries = searched()
    lessons = learning.observed(graph, goals.__getitem__, tries)
    assert lessons == [
        Lesson("eq", "left", 1, 0, 0.1),
        Lesson("eq", "omega", 1, 0, 2.0),
        Lesson("eq", "rfl", 1, 1, 0.05),
        Lesson("eq", "rw []", 1, 1, 0.1),
        Lesson("∀", "a_b", 1, 1, 0.1),
    ]


def test_older_tries_fade() -> None:
    known = [Lesson("eq", "simp", 100, 90, 10.0)]
    for _ in range(400):
        known = learning.together(known, [Lesson("eq", "simp", 1, 0, 0.1)])
    [now] = known
    assert now.helped / now.tried < 0.1


def test_what_helped_goes_up_and_what_fails_goes_down() -> None:
    lessons = [
        Lesson("eq", "rfl", 20, 15, 0.2),
        Lesson("eq", "omega", 20, 0, 0.2),
        Lesson("and", "omega", 20, 19, 0.2),
        Lesson("∀", "good_lemma", 10, 9, 1.0),
        Lesson("∀", "bad_lemma", 10, 0, 1.0),
    ]
    learned = Learned(lessons)
    names = ("omega", "grind", "rfl", "rw [bad_lemma]", "rw [good_lemma]")
    given = [Candidate(tactic, 0.2, "core") for tactic in names]
    order = [c.tactic for c in learned.weighed((GoalView("a = b"),), given)]
    assert order.index("rfl") < order.index("omega")
    assert order.index("rw [good_lemma]") < order.index("rw [bad_lemma]")
    weighed = learned.weighed((GoalView("a ∧ b"),), given)
    assert sum(c.prior or 0 for c in weighed) == pytest.approx(1.0)
    assert {c.tactic: c.source for c in weighed} == dict.fromkeys(names, "core")
    [of_and] = [c.prior for c in weighed if c.tactic == "omega"]
    [of_eq] = [c.prior for c in learned.weighed((GoalView("a = b"),), given) if c.tactic == "omega"]
    assert (of_and or 0) > 2 * (of_eq or 0)


def test_nothing_learned_changes_nothing() -> None:
    given = (Candidate("simp", 0.7), Candidate("rfl", 0.3))
    assert Learned([]).weighed((GoalView("p"),), given) == given
    assert Learned([Lesson("eq", "simp", 3, 0, 0.1)]).weighed((GoalView("p"),), given) == given


def test_what_a_run_is_given_has_a_bound_and_an_order() -> None:
    many = [Lesson("eq", f"rw {n}", 1, n, 0.1) for n in range(50)]
    kept = learning.worth_keeping(many[::-1], most=10)
    assert [lesson.helped for lesson in kept] == sorted(range(40, 50), key=lambda n: f"rw {n}")
    assert learning.worth_keeping(many, most=10) == kept


def test_tries_are_kept_only_for_who_asks_for_lessons() -> None:
    expander = world_expander(3)
    expander.expand(expander.tree.nodes[0])
    assert expander.attempts
    assert not expander.tries


def test_an_expander_teaches_what_it_tried() -> None:
    expander = world_expander(3, teaches=True)
    root = expander.tree.nodes[0]
    while not root.status:
        expander.expand(next(node for node in expander.tree.nodes if not node.status))
    lessons = expander.lessons()
    solved = [n for n in expander.tree.nodes if n.solution is not None]
    shapes = [x for x in lessons if x.goal_class != learning.LEMMA]
    assert solved
    assert sum(x.helped for x in shapes) == len(solved)
    assert sum(x.tried for x in shapes) <= len(expander.tries)
