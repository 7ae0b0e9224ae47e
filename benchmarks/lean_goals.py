"""A hundred goals and the tactics tried on them, for the Lean benchmarks and the soak."""

from __future__ import annotations

PROPOSITIONAL = [
    "∀ p q : Prop, p ∧ q → q ∧ p",
    "∀ p q : Prop, p ∨ q → q ∨ p",
    "∀ p q r : Prop, (p → q) → (q → r) → p → r",
    "∀ p q : Prop, (p → q) → ¬q → ¬p",
    "∀ p q r : Prop, p ∧ (q ∨ r) → (p ∧ q) ∨ (p ∧ r)",
    "∀ p : Prop, p → ¬¬p",
    "∀ p q : Prop, ¬(p ∨ q) → ¬p ∧ ¬q",
    "∀ p q : Prop, (p ↔ q) → (q ↔ p)",
    "∀ p q r : Prop, (p ∧ q → r) → p → q → r",
    "∀ p : Prop, p ∧ True ↔ p",
]
NUMBERS = [
    "∀ a b : {T}, a + b = b + a",
    "∀ a b c : {T}, a + b + c = a + (b + c)",
    "∀ a b : {T}, a ≤ b → a < b + 1",
    "∀ a b c : {T}, a < b → b < c → a < c",
    "∀ a : {T}, a * 1 = a",
    "∀ a b : {T}, a * b = b * a",
    "∀ a b c : {T}, a * (b + c) = a * b + a * c",
    "∀ a b : {T}, a = b → b + 1 = a + 1",
    "∀ a b : {T}, 2 * a < 2 * b → a < b",
    "∀ a b : {T}, a < b ∨ a = b ∨ b < a",
]
LISTS = [
    "∀ xs : List {T}, xs ++ [] = xs",
    "∀ xs ys : List {T}, (xs ++ ys).length = xs.length + ys.length",
    "∀ xs : List {T}, xs.reverse.length = xs.length",
    "∀ xs : List {T}, xs.map id = xs",
    "∀ (x : {T}) (xs : List {T}), x ∈ x :: xs",
    "∀ xs : List {T}, xs.reverse.reverse = xs",
    "∀ (x : {T}) (xs : List {T}), (x :: xs) ≠ []",
    "∀ xs : List {T}, xs.length = 0 → xs = []",
    "∀ x : {T}, some x ≠ none",
    "∀ (x y : {T}), some x = some y → x = y",
]
BOOLEANS = [
    "∀ a b : Bool, (a && b) = (b && a)",
    "∀ a b : Bool, (a || b) = (b || a)",
    "∀ a : Bool, (!(!a)) = a",
    "∀ a b : Bool, (!(a && b)) = (!a || !b)",
    "∀ a : Bool, a = true ∨ a = false",
    "∀ a b c : Bool, (a && b && c) = (a && (b && c))",
    "∀ a b : Bool, (a ^^ b) = (b ^^ a)",
    "∀ a : Bool, (a && false) = false",
    "∀ a b : Bool, a = b → (a ^^ b) = false",
    "∀ a : Bool, (a || true) = true",
]
FALSE = [
    "∀ n : Nat, n < n",
    "∀ p q : Prop, p ∨ q → p ∧ q",
    "∀ a b : Nat, a - b + b = a",
    "∀ xs : List Nat, xs.length > 0",
    "∀ a b : Int, a * a = b * b → a = b",
    "∀ n : Nat, n * n = n",
    "∀ p : Prop, p",
    "∀ a b : Bool, a = b",
    "∃ n : Nat, n + 1 = n",
    "∀ a b c : Nat, a - (b - c) = a - b + c",
]

GOALS: tuple[str, ...] = tuple(
    PROPOSITIONAL
    + [g.format(T=t) for t in ("Nat", "Int") for g in NUMBERS]
    + [g.format(T=t) for t in ("Nat", "Int", "Bool", "String") for g in LISTS]
    + BOOLEANS
    + FALSE
    + [f"∀ n : Nat, n + {k} = {k} + n" for k in range(1, 11)]
)

# The mix of shared/lean measurements: mostly cheap steps, some that search.
TACTICS: tuple[str, ...] = (
    "intro x",
    "intro x y",
    "intro x y h",
    "intros",
    "simp",
    "simp_all",
    "omega",
    "grind",
    "rfl",
    "constructor",
    "exact Nat.add_comm _ _",
    "assumption",
    "cases x",
    "cases h",
    "induction x",
    "rcases h with ⟨a, b⟩",
    "rcases h with a | b",
    "left",
    "right",
    "exact h",
    "apply And.intro",
    "decide",
    "contradiction",
    "exfalso",
    "subst h",
    "rw [Nat.add_comm]",
    "refine ⟨?_, ?_⟩",
    "nonsense",
    "intro (",
    "exact (by simp)",
)

assert len(GOALS) == 100
