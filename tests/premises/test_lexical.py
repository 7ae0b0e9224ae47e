"""The lexical ranking against a plain computation, and its results."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.premises.conftest import SMALL
from treewright.premises import lexical, terms
from treewright.premises.index import PremiseIndex

WORDS = st.sampled_from(["Nat", "Int", "List", "+", "=", "length", "0", "n", "∣"])
TEXTS = st.lists(WORDS, max_size=6).map(" ".join)


def plain_scores(documents: list[tuple[str, str]], query: str) -> list[float]:
    """BM25 as the formula says, document by document."""
    found = [terms.of_declaration(name, text) for name, text in documents]
    lengths = [sum(f.values()) for f in found]
    postings = sum(len(f) for f in found)
    mean = sum(length * len(f) for length, f in zip(lengths, found, strict=True)) / (postings or 1)
    scores = []
    for document, length in zip(found, lengths, strict=True):
        score = 0.0
        for term, weight in terms.of_query(query).items():
            if term not in document:
                continue
            df = sum(term in other for other in found)
            rarity = math.log1p((len(found) - df + 0.5) / (df + 0.5))
            count = document[term]
            score += weight * rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / mean))
        scores.append(score)
    return scores


@given(st.lists(TEXTS, min_size=1, max_size=6), TEXTS)
def test_scores_are_those_of_the_formula(types: list[str], query: str) -> None:
    documents = [(f"T{i}.lemma", text) for i, text in enumerate(types)]
    expected = plain_scores(documents, query)
    ranked = lexical.build(documents).rank(query, len(documents))
    assert {row for row, _ in ranked} == {i for i, score in enumerate(expected) if score > 0}
    for row, score in ranked:
        assert score == pytest.approx(expected[row], rel=1e-4)
    assert [s for _, s in ranked] == sorted((s for _, s in ranked), reverse=True)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), max_size=30), st.integers(1, 40))
def test_best_is_a_sort(scores: list[float], k: int) -> None:
    import numpy as np

    expected = sorted((-s, i) for i, s in enumerate(scores) if s > 0)[:k]
    found = lexical.best(np.array(scores, dtype=np.float32), k)
    assert found == [(i, -s) for s, i in expected]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("x y : Nat\n⊢ x + y = y + x", "Nat.add_comm"),
        ("x y : Int\n⊢ x + y = y + x", "Int.add_comm"),
        ("p q : Prop\nh : p ∧ q\n⊢ q ∧ p", "And.symm"),
        ("d n : Nat\nh : d ∣ n\npos : 0 < n\n⊢ d ≤ n", "Nat.le_of_dvd"),
        ("the length of two lists appended", "List.length_append"),
        ("List.reverse_reverse", "List.reverse_reverse"),
    ],
)
def test_helpful_premises_come_first(small_index: Path, query: str, first: str) -> None:
    with PremiseIndex.open(small_index) as index:
        found = index.lexical(query, 3)
    assert found[0].name == first
    assert found[0].ranking == "lexical"
    assert found[0].type == next(d.type for d in SMALL if d.name == first)


def test_no_common_word_gives_nothing(small_index: Path) -> None:
    with PremiseIndex.open(small_index) as index:
        assert index.lexical("zebra", 3) == ()
        assert index.lexical("", 3) == ()


def test_a_query_takes_its_rarest_terms_when_there_is_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    documents = [(f"T{i}", "Nat") for i in range(20)] + [("Rare.pear", "Nat")]
    index = lexical.build(documents)
    monkeypatch.setattr(lexical, "_MAX_POSTINGS", 5)
    ranked = index.rank("Nat pear", 30)
    assert [row for row, _ in ranked] == [20]
