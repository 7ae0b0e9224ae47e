"""Whole strategies before the tree, and lemmas found by testing; on the worker's Lean."""

from __future__ import annotations

import pytest

from treewright.lean.session.host_session import HostSession
from treewright.lean.session.knowledge import Assignment, Equation, GoalTest
from treewright.proving import portfolio
from treewright.proving.environment import LeanEnvironment
from treewright.proving.portfolio import Lemma, Opening, Portfolio, Proof, lemma_name
from treewright.proving.tactics.counterexamples import refutations

pytestmark = pytest.mark.xdist_group("lean-session")

CHAIN = """
inductive Chain (α : Type) where
  | empty
  | put (x : α) (rest : Chain α)

namespace Chain
def join {α : Type} : Chain α → Chain α → Chain α
  | .empty, t => t
  | .put x s, t => .put x (s.join t)
def flip {α : Type} : Chain α → Chain α
  | .empty => .empty
  | .put x s => s.flip.join (.put x .empty)
def size {α : Type} : Chain α → Nat
  | .empty => 0
  | .put _ s => s.size + 1
"""


def environment(lean: HostSession, theorem: str, before: str = CHAIN) -> LeanEnvironment:
    return LeanEnvironment(
        lambda: lean, lambda s: s.start_declaration(f"{before}\n{theorem} := by\n  sorry\n")
    )


def solve(lean: HostSession, theorem: str, before: str = CHAIN) -> tuple[str, GoalTest]:
    return Portfolio(environment(lean, theorem, before)).solve()


# -- scripts --------------------------------------------------------------------------------


def test_a_proof_by_induction_has_its_alternatives() -> None:
    proof = Proof(
        "induction n",
        (
            ("zero", Proof("rfl")),
            ("succ n ih", Proof("split", (("", Proof("simp")), ("", Proof("omega"))))),
        ),
    )
    assert proof.lines() == [
        "induction n with",
        "| zero => rfl",
        "| succ n ih =>",
        "  split",
        "  · simp",
        "  · omega",
    ]


def test_a_step_with_one_goal_needs_no_bullet() -> None:
    assert Proof("intro n", (("", Proof("rfl")),)).lines() == ["intro n", "rfl"]


def test_a_lemma_is_a_have() -> None:
    lemma = Lemma("add_zero", "∀ n, add n 0 = n", Proof("intro n", (("", Proof("rfl")),)))
    assert lemma.lines() == ["have add_zero : ∀ n, add n 0 = n := by", "  intro n", "  rfl"]


def test_an_opening_asks_for_every_case() -> None:
    opening = Opening("cases b", ("true", "false"))
    assert opening.text == "cases b with | true => ?_ | false => ?_"


@pytest.mark.parametrize(
    ("left", "taken", "name"),
    [
        ("flip (join xs ys)", set(), "flip_join"),
        ("join xs empty", set(), "join_empty"),
        ("size n", set(), "size_eq"),
        ("flip (join xs ys)", {"flip_join"}, "flip_join1"),
    ],
)
def test_lemmas_are_named_after_their_left_side(left: str, taken: set[str], name: str) -> None:
    binders = (("xs", "Chain α"), ("ys", "Chain α"), ("n", "Nat"))
    equation = Equation(binders, "Chain α", left, "xs", 5, 0, ("flip", "join", "size"))
    assert lemma_name(equation, taken) == name


def test_a_refutation_gives_values_instances_and_proofs_in_order() -> None:
    tested = GoalTest(
        "false",
        values=(
            Assignment("n", "3"),
            Assignment("inst", "", "instance"),
            Assignment("h", "", "proof"),
        ),
    )
    first, *_ = refutations(tested, ["f"])
    assert first.startswith("exact fun h => absurd (@h (3) inferInstance (by first | decide")
    assert first.endswith("(by decide)")


# -- strategies -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "theorem",
    [
        "theorem t {α : Type} (s t : Chain α) : (s.join t).size = s.size + t.size",
        "theorem t {α : Type} (s t u : Chain α) : (s.join t).join u = s.join (t.join u)",
        "theorem t : ∀ n m : Nat, n + m = m + n",
    ],
)
def test_a_strategy_closes_what_one_induction_proves(lean: HostSession, theorem: str) -> None:
    script, tested = solve(lean, theorem)
    assert tested.outcome != "false"
    assert script
    assert "have" not in script
    assert environment(lean, theorem).closes(script)


def test_a_missing_lemma_is_found_proved_and_written_first(lean: HostSession) -> None:
    theorem = "theorem t {α : Type} (s : Chain α) : s.flip.flip = s"
    script, _ = solve(lean, theorem)
    assert script.startswith("have ")
    assert "flip_join" in script
    assert environment(lean, theorem).closes(script)


def test_superfluous_lemmas_are_left_out(lean: HostSession) -> None:
    theorem = "theorem t {α : Type} (s : Chain α) : s.flip.flip = s"
    env = environment(lean, theorem)
    search = Portfolio(env)
    script, _ = search.solve()
    lines = script.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("have ")]
    assert 0 < len(starts) <= len(search.lemmas)
    for begin, end in zip(starts, [*starts[1:], None], strict=True):
        tail = lines[end:] if end is not None else lines[_end_of_have(lines, begin) :]
        assert not env.closes("\n".join([*lines[:begin], *tail]))


def _end_of_have(lines: list[str], begin: int) -> int:
    return next(i for i in range(begin + 1, len(lines)) if not lines[i].startswith("  "))


def test_no_strategy_is_tried_on_a_goal_that_tests_refute(lean: HostSession) -> None:
    env = environment(lean, "theorem t {α : Type} (s t : Chain α) : s.join t = t.join s")
    search = Portfolio(env)
    script, tested = search.solve()
    assert (script, tested.outcome, search.tried) == ("", "false", 0)


def test_a_goal_that_no_strategy_closes_ends_within_its_limits(
    lean: HostSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portfolio, "STRATEGY_TRIES", 12)
    monkeypatch.setattr(portfolio, "DISCOVERY_TRIES", 20)
    theorem = "theorem t (n : Nat) (h : ∀ k, 2 ≤ k → k < n → n % k ≠ 0) : ∃ p, n < p ∧ 2 ≤ p"
    search = Portfolio(environment(lean, theorem, before=""))
    search.solve()
    assert search.tried <= 32


def test_nothing_is_tried_after_the_user_asked_to_stop(lean: HostSession) -> None:
    env = environment(lean, "theorem t : ∀ n m : Nat, n + m = m + n")
    search = Portfolio(env, stop_asked=lambda: True)
    assert search.solve()[0] == ""
    assert search.tried == 0
