"""What texts are about: words, operators, shapes, and never the names of variables."""

from __future__ import annotations

import pytest

from treewright.premises import terms


def shape(text: str) -> str:
    return terms.shape_terms(terms.analyse(text))[-1]


@pytest.mark.parametrize(
    "goal",
    [
        "x + y = y + x",
        "∀ (n m : Nat), n + m = m + n",
        "first second : Nat\n⊢ first + second = second + first",
        "a b : Nat\nh : a < b\n⊢ a + b = b + a",
        "∀ first second : Nat, first + second = second + first",
        "(h : 1 < 2) → ∀ p q, p + q = q + p",
    ],
)
def test_the_shape_of_a_conclusion_does_not_depend_on_letters(goal: str) -> None:
    assert shape(goal) == "=$0 + $1 = $1 + $0"


@pytest.mark.parametrize("other", ["x + y = x + y", "x + x = x + x", "x * y = y * x", "x + y"])
def test_different_conclusions_have_different_shapes(other: str) -> None:
    assert shape(other) != shape("x + y = y + x")


def test_an_arrow_inside_brackets_does_not_begin_the_conclusion() -> None:
    assert shape("(f : Nat → Nat) → f 0 = 1") == "=$0 0 = 1"


def test_names_give_their_words() -> None:
    assert terms.words_of("Nat.toInt8_add") == {"nat", "toint8", "to", "int8", "add"}
    assert terms.words_of("h✝") == {"h"}


def test_variables_are_no_terms() -> None:
    found = terms.of_query("counter limit : Nat\nbig : counter < limit\n⊢ counter ≤ limit")
    assert not {"counter", "limit", "big"} & set(found)
    assert {"≤", "<", "nat"} <= set(found)


def test_hypotheses_count_less_than_the_target() -> None:
    found = terms.of_query("h : a ∣ b\n⊢ a ≤ b")
    assert found["≤"] == 1.0
    assert found["∣"] == terms.HYPOTHESIS_WEIGHT


def test_a_field_of_a_variable_counts_as_the_function() -> None:
    assert "length" in terms.of_query("xs : List Nat\n⊢ xs.length = 0")
    assert "xs" not in terms.of_query("xs : List Nat\n⊢ xs.length = 0")


def test_a_full_name_is_a_term_of_its_own() -> None:
    assert "@nat.add_comm" in terms.of_query("Nat.add_comm")
    assert "@nat.add_comm" in terms.of_declaration("Nat.add_comm", "True")


@pytest.mark.parametrize("text", ["", " ", "⊢", "∀", "(((", "))) → ,", '"', "«", "\x00", "→"])
def test_odd_texts_are_taken(text: str) -> None:
    terms.of_query(text)
    terms.of_declaration("x", text)
