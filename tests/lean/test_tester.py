"""Testing goals on random values: what is called false is false, and nothing hangs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.lean.conftest import state
from treewright.lean.session import knowledge
from treewright.lean.session.answers import CheckResult, ProofState
from treewright.lean.session.host_session import HostSession

pytestmark = pytest.mark.xdist_group("lean-session")

WORLD = """\
namespace Mini
inductive Colour where | red | green | blue deriving DecidableEq
inductive Tree (α : Type u) where | leaf | node (l : Tree α) (x : α) (r : Tree α)
def Tree.size : Tree α → Nat | .leaf => 0 | .node l _ r => l.size + r.size + 1
def Tree.mirror : Tree α → Tree α | .leaf => .leaf | .node l x r => .node r.mirror x l.mirror
def half (n : Nat) : Nat := if h : n < 2 then 0 else half (n - 2) + 1
termination_by n
def EvenNat (n : Nat) : Prop := ∃ k, n = 2 * k
def Small (n : Nat) : Prop := n < 4
def Sorted : List Nat → Prop | [] => True | [_] => True | a :: b :: r => a ≤ b ∧ Sorted (b :: r)
structure Between (n : Nat) : Prop where
  above : 2 < n
  below : n < 5
inductive Ev : Nat → Prop | zero : Ev 0 | step : Ev n → Ev (n + 2)
inductive Reach : Nat → Nat → Prop
  | refl : Reach n n
  | trans : Reach n m → Reach m k → Reach n k
inductive Vec (α : Type u) : Nat → Type u | nil : Vec α 0 | cons : α → Vec α n → Vec α (n + 1)
structure Interval where
  low : Nat
  high : Nat
  ok : low ≤ high
class Weight (α : Type u) where weight : α → Nat
instance : Weight Nat := ⟨id⟩
def slow : Nat → Nat | 0 => 1 | n + 1 => slow n + slow n
"""

TRUE = """\
∀ a b : Nat, a + b = b + a
∀ n : Nat, n < 1000000000 → n ≤ 999999999
(Or.inl trivial : True ∨ True) = Or.inr trivial
∀ (p q : Prop) (h k : p ∨ q), h = k
"abc" = String.ofList ['a', 'b', 'c']
"äß€" ++ "𝄞" = String.ofList ['ä', 'ß', '€', '𝄞']
∀ s t : String, (s ++ t).length = s.length + t.length
∀ (α : Type 1) (x : α), x = x
∀ (α : Type u) (x : α) (xs : List α), (x :: xs).length = xs.length + 1
∀ (α : Sort u) [Subsingleton α] (x y : α), x = y
∀ (α : Type u) [BEq α] [LawfulBEq α] (x y : α), x == y → x = y
∀ (α : Type u) (t : Tree α), t.mirror.mirror = t
∀ (α : Type u) (t : Tree α), t.mirror.size = t.size
∀ x : Empty, x ≠ x
∀ x : Fin 0, False
∀ x : Fin 5, x.val < 5
∀ x : {n : Nat // n > 2}, x.val ≠ 2
∀ i : Interval, i.low ≤ i.high
∀ p : Prop, p ∨ ¬p
∀ p q : Prop, (p ↔ q) → p = q
¬ ∀ n : Nat, n = 0
¬ ∃ n : Nat, n < 0
∀ n : Nat, ∃ m, n < m
∀ f : Nat → Nat, (∀ x, f x = x) → f = id
∀ (s : Setoid Nat) (a b : Nat), s.r a b → Quotient.mk s a = Quotient.mk s b
∀ n : Nat, Ev n → EvenNat n
∀ n : Nat, EvenNat n → Ev n
∀ n : Nat, half (2 * n) = n
∀ n : Nat, half n = n / 2
(⟨1, True.intro⟩ : PProd Nat True) = ⟨1, True.intro⟩
(⟨True.intro, 1⟩ : PProd True Nat) ≠ ⟨True.intro, 2⟩
(⟨2, 1⟩ : PProd Nat Nat) ≠ ⟨2, 2⟩
(False → Nat) = (False → Nat)
∀ n m k : Nat, Reach n m → Reach m k → Reach n k
∀ xs : List Nat, (∀ x ∈ xs, x = 0) → ∀ y ∈ xs, y + 1 = 1
∀ n : Nat, (∀ m, m < n → m ≠ 3) → n ≤ 3
∀ n : Nat, Between n → n = 3 ∨ n = 4
∀ (x y : Colour) (f : Colour → Colour), (∀ a b, f a = f b → a = b) → f x = f y → x = y
∀ (n : Nat) (v : Vec Nat n), v = v
∀ (a : Array Nat) (i : Nat) (h : i < a.size), a[i] = a[i]
∀ n : Nat, n ≠ 0 → ∃ m, n = m + 1
let x := 3; x + x = 6
∀ x y : Int, x - y = -(y - x)
∀ c : Char, c.toNat < 2000000
∃ x : Nat, x * x = 49 ∧ ∀ y : Nat, y * y = 49 → y = x
∀ n : Nat, 0 < slow n
∀ (P : Nat → Prop), P 0 → (∀ n, P n → P (n + 1)) → ∀ n, P n
∀ (α : Type u) [Weight α] (x : α), Weight.weight x = Weight.weight x
∀ (a b : Nat) (h : a = b) (x : Fin a), (h ▸ x : Fin b).val = x.val
∀ xs : List Nat, Sorted xs → Sorted xs.tail
""".splitlines()

FALSE = """\
∀ n : Nat, n < 50
∀ a b : Nat, a - b = b - a
∀ s : String, s ++ "a" = "a" ++ s
∀ c : Char, c = 'a'
∀ x : Int, x = -x
∀ x : Int, 0 ≤ x
∀ x : Fin 3, x = 1
∀ x : Option (Nat × Bool), x = none
∀ (f : Nat → Nat) (x : Nat), f x = x
∀ (f : Nat → Nat → Nat) (x y : Nat), f x y = f y x
∀ (α : Type u) (x y : α), x = y
∀ (α : Type u) [DecidableEq α] (xs : List α), xs.eraseDups = xs
∀ p q : Prop, p ∨ q → p ∧ q
∀ p q r : Prop, (p → q) → (r → q) → p ∨ r
∀ a : Array Nat, a.size = 0
∀ x : {n : Nat // n > 2}, x.val = 5
∀ (p : Nat → Prop) [DecidablePred p] (n : Nat), p n
∀ x : Bool, ∃ y, x ≠ y ∧ y = true
∃ x : Bool, x ≠ x
∃ x : Colour, x ≠ .red ∧ x ≠ .green ∧ x ≠ .blue
∀ n : Nat, n % 7 = 3 → n < 20 → n = 3
¬ ∀ n : Nat, n = n
∀ (α : Type u) (t : Tree α), t.mirror = t
∀ n : Nat, half n = n
∀ n : Nat, Small n
∀ n : Nat, Between n → n = 3
∀ xs : List Nat, Sorted xs
∀ xs : List Nat, xs.length = 2 → Sorted xs
∀ i : Interval, i.low = i.high
∀ n : Nat, n < 20 → ∀ i < n, i < 3
∀ xs : List Nat, (∀ x ∈ xs, x < 3) → xs.length < 3
∀ (x y : Colour) (f : Colour → Colour), f x = f y → x = y
∀ f g : Nat → Nat, f = g
let x := 3; x + x = 7
∀ (α : Type u) [Weight α] (x y : α), Weight.weight x = Weight.weight y
∀ x y : Nat, x = y → x = 0
""".splitlines()

HUGE = """\
2 ^ 1000000000 = 3
∀ n : Nat, slow (n + 40) = 0
(List.replicate 1000000 0).length = 1000001
(Nat.rec 0 (fun _ ih => ih) 10000000 : Nat) = 3
∀ n : Nat, slow (2 ^ n) < slow (3 ^ n)
∀ x : Fin (2 ^ 200), x.val = 0
half 100000000 = 3
""".splitlines()


def opened(lean: HostSession, statements: Sequence[str]) -> list[ProofState]:
    """Open statements over the miniatures, all in one file."""
    theorems = [f"theorem goal{n} : {s} := by\n  sorry\n" for n, s in enumerate(statements)]
    result = lean.elaborate("\n".join(["universe u", WORLD, *theorems]), sorries=True)
    assert isinstance(result, CheckResult)
    assert result.errors == (), result.errors
    assert len(result.sorries) == len(statements)
    return [place.states[0] for place in result.sorries]


def test_no_true_statement_is_called_false(lean: HostSession) -> None:
    assert len(TRUE) >= 30
    wrong = [
        (statement, result)
        for statement, goal in zip(TRUE, opened(lean, TRUE), strict=True)
        for seed in (1, 2)
        if (result := lean.test(goal, samples=30, seed=seed, seconds=2.0)).outcome == "false"
    ]
    assert wrong == []


def test_false_statements_are_refuted_by_values_that_refute(lean: HostSession) -> None:
    """Lean proves the negation, given the values, of nearly all."""
    assert len(FALSE) >= 30
    missed: list[str] = []
    unproved: list[tuple[str, object]] = []
    for statement, goal in zip(FALSE, opened(lean, FALSE), strict=True):
        result = lean.test(goal, seconds=20.0)
        if result.outcome != "false":
            missed.append(statement)
    assert len(missed) <= len(FALSE) // 10, missed
    hard = ("Type", "(p :", "Between", "Interval", "∀ f g")  # to prove, given the values
    plain = [s for s in FALSE if s.startswith("∀ ") and not any(word in s for word in hard)]
    negations = [f"¬ ({s})" for s in plain]
    for statement, goal, negation in zip(
        plain, opened(lean, plain), opened(lean, negations), strict=True
    ):
        result = lean.test(goal, seconds=20.0)
        if result.outcome == "false" and not refutes(lean, negation, result):
            unproved.append((statement, result.values))
    assert len(unproved) <= len(plain) // 10, unproved


ARGUMENTS = {"proof": "(by simp [half, Sorted, Small])", "instance": "inferInstance"}


def refutes(lean: HostSession, negation: ProofState, result: knowledge.GoalTest) -> bool:
    """Whether Lean proves the negation of a statement with the values of a result."""
    given = [ARGUMENTS.get(v.kind, f"({v.value})") for v in result.values]
    definitions = "half, Sorted, Small"
    for count in range(len(given), -1, -1):
        call = " ".join(["@h", *given[:count]])
        for close in (
            "exact absurd this (by decide)",
            f"simp [{definitions}] at this",
            "simp_all; omega",
        ):
            script = f"intro h\nhave := {call}\n{close}"
            end = lean.run_tactic(negation, script)
            if isinstance(end, ProofState) and end.closed:
                return True
    return False


@pytest.mark.parametrize("statement", HUGE)
def test_a_term_that_computes_for_ever_ends_no_session(lean: HostSession, statement: str) -> None:
    (goal,) = opened(lean, [statement])
    result = lean.test(goal, seconds=1.0)
    assert result.outcome != "passed"
    assert lean.alive


def test_hypotheses_are_taken_from_the_context(lean: HostSession) -> None:
    start = state(lean.start("∀ n m : Nat, n < m → m < n + 3 → m = n + 1"))
    inside = state(lean.run_tactic(start, "intro n m h k"))
    result = lean.test(inside, seconds=20.0)
    assert result.outcome == "false"
    n, m = (int(v.value) for v in result.values if v.kind == "value")
    assert n < m < n + 3
    assert m != n + 1


def test_a_local_instance_is_not_taken_for_another(lean: HostSession) -> None:
    """`inst` is one decision procedure among others: no value may be computed with a variable."""
    start = state(lean.start("∀ (inst : Inhabited Nat), @default Nat inst = 0"))
    inside = state(lean.run_tactic(start, "intro inst"))
    assert lean.test(inside, seconds=20.0).outcome in ("unknown", "passed", "false")
    start = state(lean.start("∀ (inst : DecidableEq Nat) (n : Nat), (if n = n then 1 else 2) = 1"))
    inside = state(lean.run_tactic(start, "intro inst n"))
    assert lean.test(inside, seconds=20.0).outcome != "false"


def test_an_unsolved_metavariable_is_no_value(lean: HostSession) -> None:
    start = state(lean.start("∃ n : Nat, n = 3 ∧ n < 5"))
    inside = state(lean.run_tactic(start, "refine ⟨?_, ?_⟩; rotate_left"))
    assert lean.test(inside, seconds=20.0).outcome != "false"
    assert state(lean.run_tactic(inside, "constructor\n· rfl\n· decide")).goals == ()


def test_tests_free_what_they_make(lean: HostSession) -> None:
    (goal,) = opened(lean, ["∀ (t : Tree Nat), t.mirror.mirror = t"])
    before = heap = 0
    for turn in range(6):
        lean.test(goal, samples=200, seed=turn, seconds=30.0)
        heap = lean.heap_bytes
        before = before or heap
    assert heap <= before + (8 << 20)


def test_the_same_seed_gives_the_same_result(lean: HostSession) -> None:
    (goal,) = opened(lean, ["∀ n m : Nat, half n < m + 3"])
    one, two = (lean.test(goal, seed=5, seconds=30.0) for _ in range(2))
    assert one == two
    assert one.outcome == "false"
