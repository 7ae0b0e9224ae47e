"""What searches teach: shapes and classes, counting, fading. Without Lean."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.proving.synthetic import world_expander
from treewright.lean.session.answers import Hypothesis
from treewright.proving import learning
from treewright.proving.learning import Lesson, Try
from treewright.proving.records import Attempt, Candidate, GoalView
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
    assert learning.tactic_shape(tactic) == shape


def test_classes_are_outermost_signs_and_available_facts() -> None:
    assert learning.goal_class(GoalView("∀ n, n = n")) == "forall"
    assert learning.goal_class(GoalView("a ∧ b = c")) == "and"
    assert learning.goal_class(GoalView("Even\n  n")) == "other"
    number = Hypothesis("n", "Nat")
    assert learning.goal_class(GoalView("n = n", (number,))) == "eq"
    fact = Hypothesis("h", "n ≤ 3")
    assert learning.goal_class(GoalView("n = n", (number, fact))) == "eq facts"
    hypothesis = Hypothesis("ih", "n + 0 = n")
    assert learning.goal_class(GoalView("n = n", (number, fact, hypothesis))) == "eq ih"


def searched() -> tuple[Graph, dict[int, tuple[GoalView, ...]], list[Try]]:
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
        Try(0, Attempt("omega", "error", 2000.0), 0.4),
        Try(0, Attempt("grind", "timeout", 5000.0), 0.3),
        Try(0, Attempt("rw [a_b]", "goals", 100.0, way.id), 0.1),
        Try(0, Attempt("rw [b_a]", "error", 100.0), 0.05),
        Try(0, Attempt("left", "goals", 100.0, other.id), 0.1),
        Try(other.children[0].id, Attempt("simp", "error", 50.0), 0.2),
        Try(way.children[0].id, Attempt("rfl", "closed", 50.0, closing.id), 0.6),
    ]
    return graph, goals, tries


def test_only_solved_goals_and_finished_tries_teach() -> None:
    graph, goals, tries = searched()
    lessons = learning.lessons_of_search(graph, goals.__getitem__, tries)
    assert lessons == [
        Lesson("eq", "left", 1, 0, 0.1, 0.1),
        Lesson("eq", "omega", 1, 0, 2.0, 0.4),
        Lesson("eq", "rfl", 1, 1, 0.05, 0.6),
        Lesson("eq", "rw []", 2, 1, 0.2, 0.15),
    ]


def test_older_tries_fade() -> None:
    known = [Lesson("eq", "simp", 100, 90, 10.0, 20.0)]
    for _ in range(400):
        known = learning.merge_lessons(known, [Lesson("eq", "simp", 1, 0, 0.1, 0.2)])
    [now] = known
    assert now.helped / now.tried < 0.1
    assert now.prior == pytest.approx(0.2 * now.tried)


def test_the_lessons_of_a_run_are_bounded_and_ordered() -> None:
    many = [Lesson("eq", f"rw {n}", 1, n, 0.1, 0.2) for n in range(50)]
    kept = learning.select_lessons(many[::-1], most=10)
    assert [lesson.helped for lesson in kept] == sorted(range(40, 50), key=lambda n: f"rw {n}")
    assert learning.select_lessons(many, most=10) == kept


def test_tries_are_kept_only_if_lessons_are_wanted() -> None:
    expander = world_expander(3)
    expander.expand(expander.tree.nodes[0])
    assert expander.attempts
    assert not expander.tries


def test_an_expander_gives_lessons_of_its_tries() -> None:
    expander = world_expander(3, keeps_tries=True)
    root = expander.tree.nodes[0]
    while not root.status:
        expander.expand(next(node for node in expander.tree.nodes if not node.status))
    lessons = expander.lessons()
    solved = [n for n in expander.tree.nodes if n.solution is not None]
    assert solved
    assert sum(x.helped for x in lessons) == len(solved)
    assert sum(x.tried for x in lessons) <= len(expander.tries)


class Turned:
    """Weighs as lessons do: the last first, with another prior."""

    def adjust(
        self, goals: Sequence[GoalView], candidates: Sequence[Candidate]
    ) -> tuple[Candidate, ...]:
        return tuple(Candidate(c.tactic, 9.0 - n, c.source) for n, c in enumerate(candidates[::-1]))


def test_lessons_have_the_unadjusted_prior() -> None:
    expander = world_expander(3, keeps_tries=True, learned=Turned())
    expander.expand(expander.tree.nodes[0])
    tried = {one.attempt.tactic: one.prior for one in expander.tries}
    given = {"t0": 1 / 2, "t1": 1 / 3, "t2": 1 / 4}
    assert list(tried) == ["t2", "t1"]
    assert tried == {tactic: given[tactic] for tactic in tried}
