"""Outlines of propositions, as Lean prints them."""

from __future__ import annotations

import pytest

from treewright.lean.session.answers import Hypothesis
from treewright.proving.records import GoalView
from treewright.proving.tactics.goal_outline import (
    Binder,
    Fresh,
    arguments,
    introduced,
    pattern,
    shape,
)


@pytest.mark.parametrize(
    ("text", "kind", "parts"),
    [
        ("a → b ↔ c", "iff", ("a → b", "c")),
        ("a ∧ b → c ∨ d", "implies", ("a ∧ b", "c ∨ d")),
        ("a → b → c", "implies", ("a", "b → c")),
        ("(a → b) ∧ c", "and", ("(a → b)", "c")),
        ("a ∨ ∀ (x : Nat), p x → q x", "or", ("a", "∀ (x : Nat), p x → q x")),
        ("¬a ∧ b", "and", ("¬a", "b")),
        ("¬∃ x, p x ∧ q x", "not", ("∃ x, p x ∧ q x",)),
        ("¬a = b", "not", ("a = b",)),
        ("∃ x y, x < y ∧ p x", "exists", ("x < y ∧ p x",)),
        ("(a = b)", "eq", ("a", "b")),
        ("f (a = b) ≤ 3", "order", ("f (a = b)", "3")),
        ("x = if c then a → b else d", "eq", ("x", "if c then a → b else d")),
        ("x ≠\n  y", "ne", ("x", "y")),
        ("False", "false", ()),
        ("x ∈ xs", "other", ()),
    ],
)
def test_the_outermost_connective(text: str, kind: str, parts: tuple[str, ...]) -> None:
    outline = shape(text)
    assert (outline.kind, outline.parts) == (kind, parts)


def test_binders_of_every_style() -> None:
    outline = shape("∀ {α : Type} [DecidableEq α] (f g : α → α), f = g")
    assert outline.binders == (
        Binder("α", "Type"),
        Binder(None, "DecidableEq α"),
        Binder("f", "α → α"),
        Binder("g", "α → α"),
    )
    assert shape("∃ x y, x = y").binders == (Binder("x", ""), Binder("y", ""))


def test_an_application_is_split_outside_brackets() -> None:
    assert arguments("List (Option α) x[1]") == ["List", "(Option α)", "x[1]"]


def test_introduced_names_hide_nothing() -> None:
    goal = GoalView(
        "∀ (p : Prop) (x : Nat), p → h1 → ¬q x", (Hypothesis("p", "Nat"), Hypothesis("h", "p = 1"))
    )
    assert introduced(goal) == ["p1", "x", "h1", "h2", "h3"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a ∧ b ∧ c", "⟨h, h1, h2⟩"),
        ("∃ x y, p x ∧ q y", "⟨x, y, h, h1⟩"),
        ("a ∨ b ∧ c ∨ d", "h | ⟨h1, h2⟩ | h3"),
        ("(∃ n, p n) ∨ q", "⟨n, h⟩ | h1"),
        ("∃ n, p n ∨ q n", "⟨n, h | h1⟩"),
        ("a → b", "h"),
    ],
)
def test_patterns_take_all_apart(text: str, expected: str) -> None:
    assert pattern(text, Fresh([])) == expected
