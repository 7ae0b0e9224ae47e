"""The ranked list of core tactics: the proposals for each outline, and that Lean accepts them."""

from __future__ import annotations

import pytest

from treewright.lean.session.answers import Hypothesis, ProofState
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.restrictions import find_escapes
from treewright.proving.environment import views
from treewright.proving.records import GoalView
from treewright.proving.tactics.core import CoreTactics


def proposed(target: str, *hypotheses: tuple[str, str], round_number: int = 0) -> list[str]:
    goal = GoalView(target, tuple(Hypothesis(name, of) for name, of in hypotheses))
    suggestions = CoreTactics().suggest([goal], round_number)
    assert len(suggestions.candidates) <= 40
    priors = [candidate.prior or 0.0 for candidate in suggestions.candidates]
    assert priors == sorted(priors, reverse=True)
    assert not priors or sum(priors) == pytest.approx(0.15 if round_number else 1.0)
    tactics = [candidate.tactic for candidate in suggestions.candidates]
    assert len(set(tactics)) == len(tactics)
    assert not [tactic for tactic in tactics if find_escapes(tactic)]
    return tactics


def test_introductions_come_first() -> None:
    assert proposed("∀ (p q : Prop), p → q → p")[0] == "intro p q h h1"
    assert proposed("p ∧ q", ("p", "Prop"), ("q", "Prop"))[0] == "constructor"
    assert {"left", "right"} <= set(proposed("p ∨ q", ("p", "Prop"), ("q", "Prop")))


def test_facts_are_taken_apart_before_anything_else() -> None:
    assert proposed("q", ("h", "p ∧ q"))[0] == "obtain ⟨h1, h2⟩ := h"
    assert "rcases h with h1 | h2" in proposed("r", ("h", "p ∨ q"))[:3]


def test_recursive_data_is_inducted_on_with_names_and_with_the_rest_general() -> None:
    tactics = proposed("List.foldl f a xs = a", ("xs", "List Nat"), ("a", "Nat"))
    assert "induction xs with | nil => ?_ | cons x xs ih => ?_" in tactics
    assert "induction xs generalizing a with | nil => ?_ | cons x xs ih => ?_" in tactics


@pytest.mark.parametrize(
    ("target", "witness"),
    [
        ("∃ k, n = 4 * k + 3", "n / 4"),
        ("∃ k, n = k + k", "n / 2"),
        ("∃ k, n + 2 = k + k", "(n + 2) / 2"),
        ("∃ m, m > n ∧ m % 7 = 3", "7 * n + 10"),
    ],
)
def test_solutions_for_numbers_are_witnesses(target: str, witness: str) -> None:
    assert f"refine ⟨{witness}, ?_⟩" in proposed(target, ("n", "Nat"))


def test_remainders_of_products_are_worked_out_by_those_of_the_variables() -> None:
    split = (
        "have h : n % 3 = 0 ∨ n % 3 = 1 ∨ n % 3 = 2 := by omega\n"
        "rcases h with h | h | h <;> simp [Nat.mul_mod, h]"
    )
    assert split in proposed("n * n % 3 ≠ 2", ("n", "Nat"))
    assert not any("rcases" in t for t in proposed("n % 3 ≠ 4", ("n", "Nat"))), "omega does that"
    assert not any("rcases" in t for t in proposed("n * n % 97 ≠ 5", ("n", "Nat"))), "too many"
    found = proposed("2 ∣ a * b", ("a", "Int"), ("b", "Int"), ("h", "a % 2 = 0"))
    assert "simp [Int.dvd_iff_emod_eq_zero, Int.mul_emod, h]" in found
    assert any(
        t.endswith("first | omega | simp [Int.dvd_iff_emod_eq_zero, Int.mul_emod, h1, h2]")
        for t in found
    )


def test_whether_all_are_so_is_a_case_distinction() -> None:
    found = proposed("∃ x, p x → ∀ (y : α), p y", ("α", "Type"), ("p", "α → Prop"))
    assert "by_cases h : ∀ (y : α), p y" in found
    given = proposed("∃ x, p x → ∀ (y : α), p y", ("p", "α → Prop"), ("h", "¬∀ (y : α), p y"))
    assert "simp at h" in given
    assert not any(t.startswith("by_cases") for t in given)
    later = proposed("∃ x, p x", ("p", "α → Prop"), round_number=1)
    assert "refine Classical.byContradiction fun h => ?_" in later


def test_inhabitants_are_witnesses() -> None:
    assert "refine ⟨default, ?_⟩" in proposed("∃ x, p x", ("inst", "Inhabited α"))
    assert "obtain ⟨a⟩ := h" in proposed("∃ x, p x", ("h", "Nonempty α"))


@pytest.mark.parametrize(
    ("target", "witness"),
    [
        ("∃ f, ∀ (a b : Bool), f a b = true ↔ a ≠ b", "fun a b => a != b"),
        ("∃ f, ∀ (n : Nat), f n > n", "fun x => x + 1"),
        ("∃ f, ∀ (n : Nat), f (f n) = n", "fun x => x"),
    ],
)
def test_an_applied_witness_is_a_function(target: str, witness: str) -> None:
    assert f"refine ⟨{witness}, ?_⟩" in proposed(target)


def test_a_longer_list_is_a_witness() -> None:
    given = (("x", "α"), ("xs", "List α"), ("n", "Nat"))
    found = proposed("∃ ys, P ys", ("α", "Type"), *given)
    assert "refine ⟨x :: xs, ?_⟩" in found
    assert "refine ⟨n :: xs, ?_⟩" not in found


@pytest.mark.parametrize("says", ["f (n + 1) < f n", "f n > f (n + 1)"])
def test_natural_numbers_do_not_fall_for_ever(says: str) -> None:
    descent = (
        "suffices h1 : ∀ m n, f n < m → False from h1 _ 0 (Nat.lt_succ_self _)\n"
        "intro m\ninduction m with | zero => ?_ | succ m ih => ?_"
    )
    function = ("f", "Nat → Nat")
    assert descent in proposed("False", function, ("h", f"∀ (n : Nat), {says}"))
    assert descent not in proposed("False", function, ("h", "∀ (n : Nat), f n < f (n + 1)"))


def test_split_only_where_there_is_something_to_split() -> None:
    assert "split" in proposed("(if c then 1 else 2) = x")
    assert "split" not in proposed("a = x")


def test_expensive_tactics_are_in_the_second_round_and_then_nothing_is_left() -> None:
    general = (("f", "Nat → Nat"), ("h", "∀ (n : Nat), f (n + 1) = f n"), ("n", "Nat"))
    assert "grind" not in proposed("f n = n", *general)
    assert "grind" in proposed("f n = n", *general, round_number=1)
    assert "grind" in proposed("n = m", ("n", "Nat"), ("m", "Nat"))
    last = CoreTactics().suggest([GoalView("a = b")], 2)
    assert last.complete
    assert not last.candidates


STRUCTURAL = ("intro", "obtain", "rcases", "induction", "cases", "refine", "by_cases", "rename_i")


@pytest.mark.parametrize(
    ("statement", "opening"),
    [
        ("∀ {α : Type} [DecidableEq α] (xs : List α), xs = xs", ""),
        ("∀ (a b : Nat) (h : (∃ x y, x + y = a ∧ y ≠ b) ∨ a = b), a = b", "intro a b h"),
        ("∀ (xs ys : List Nat) (n : Nat), xs ++ ys = ys", "intro xs ys n"),
        ("∀ (o : Option Nat) (b : Bool) (z : Int), o = none ∨ b = true ∨ z = 0", "intro o b z"),
        ("∀ (p q : Prop), (p ↔ q) → p ∨ q", "intro p q h"),
        ("∀ (x xs : Nat) (ys : List Nat), ys = [x, xs]", "intro x xs ys"),
    ],
)
def test_lean_accepts_the_structural_tactics(
    lean: HostSession, statement: str, opening: str
) -> None:
    state = lean.start(statement)
    assert isinstance(state, ProofState)
    if opening:
        state = lean.run_tactic(state, opening)
        assert isinstance(state, ProofState)
    candidates = CoreTactics().suggest(views(state.goals), 0).candidates
    tried = [c.tactic for c in candidates if c.tactic.startswith(STRUCTURAL)]
    assert tried
    for tactic in tried:
        assert isinstance(lean.run_tactic(state, tactic), ProofState), tactic
