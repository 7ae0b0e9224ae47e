"""Vectors, fusion, and searches that say which ranking they used."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.premises.conftest import SMALL, theorem
from treewright.kernel.errors import MissingExtra, UsageError
from treewright.premises import vectors
from treewright.premises.encoder import SentenceEncoder
from treewright.premises.index import PremiseIndex, fuse
from treewright.premises.index_builder import build_vectors, index_words
from treewright.premises.store import PremiseStore
from treewright.premises.vectors import VectorIndex


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder()


@pytest.fixture
def embedded(small_index: Path, encoder: SentenceEncoder) -> Path:
    assert build_vectors(small_index, encoder) == len(SMALL)
    return small_index


def unit_vectors(count: int) -> np.ndarray:
    """Around two hundred centres, as texts on a few subjects are."""
    random = np.random.default_rng(5)
    centres = random.normal(size=(200, 48))
    found = centres[random.integers(200, size=count)] + 0.7 * random.normal(size=(count, 48))
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def test_up_to_the_limit_the_nearest_are_exact() -> None:
    data = unit_vectors(500)
    ids = np.arange(500, dtype=np.int64) * 7 + 3
    index = VectorIndex.from_bytes(VectorIndex.build(ids, data).to_bytes())
    assert len(index) == 500
    for row in range(0, 500, 50):
        cosines = data @ data[row]
        expected = [int(ids[i]) for i in np.argsort(-cosines, kind="stable")[:5]]
        found = index.rank(data[row], 5)
        assert [i for i, _ in found] == expected
        assert found[0][1] == pytest.approx(1.0, abs=1e-5)


def test_beyond_the_limit_nearly_all_of_the_nearest_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "EXACT_LIMIT", 1000)
    data = unit_vectors(5000)
    index = VectorIndex.build(np.arange(5000, dtype=np.int64), data)
    hits = 0
    for row in range(0, 5000, 100):
        exact = set(np.argsort(-(data @ data[row]))[:10].tolist())
        found = [i for i, _ in index.rank(data[row], 10)]
        assert found[0] == row
        hits += len(exact & set(found))
    assert hits >= 0.8 * 500


def test_fewer_than_asked_for() -> None:
    index = VectorIndex.build(np.array([4, 5]), unit_vectors(2))
    assert sorted(i for i, _ in index.rank(unit_vectors(2)[0], 10)) == [4, 5]


@given(st.lists(st.lists(st.integers(0, 9), unique=True, max_size=10), max_size=3))
def test_fusion_is_the_sum_of_reciprocal_ranks(rankings: list[list[int]]) -> None:
    expected = {
        item: sum(1 / (61 + ranking.index(item)) for ranking in rankings if item in ranking)
        for ranking in rankings
        for item in ranking
    }
    found = fuse(rankings, 100)
    assert dict(found) == pytest.approx(expected)
    assert [score for _, score in found] == sorted((s for _, s in found), reverse=True)
    assert fuse(rankings, 2) == found[:2]


def test_by_meaning_and_by_both(embedded: Path) -> None:
    query = "reversing a sequence twice gives it back"
    with PremiseIndex.open(embedded) as index:
        by_meaning = index.semantic(query, 1)[0]
        assert (by_meaning.name, by_meaning.ranking) == ("List.reverse_reverse", "semantic")
        found = index.search("x y : Int\n⊢ x + y = y + x", 3)
        assert found[0].name in ("Int.add_comm", "Nat.add_comm")
        assert {premise.ranking for premise in found} == {"fused"}
        assert found[0].score > found[1].score > found[2].score


def test_without_embeddings_there_is_no_silent_fallback(small_index: Path) -> None:
    with PremiseIndex.open(small_index) as index, pytest.raises(UsageError, match="--lexical"):
        index.search("Nat", 1)


def test_only_new_premises_are_embedded(embedded: Path, encoder: SentenceEncoder) -> None:
    assert build_vectors(embedded, encoder) == 0
    with PremiseStore(embedded, write=True) as store:
        store.put([theorem("Nat.add_comm", "True"), theorem("Nat.new", "False")])
        store.remove(["And.symm"])
        index_words(store)
    with PremiseIndex.open(embedded) as index, pytest.raises(UsageError, match="no embeddings"):
        index.search("Nat", 1)
    assert build_vectors(embedded, encoder) == 2
    with PremiseIndex.open(embedded) as index:
        names = {premise.name for premise in index.semantic("anything", 100)}
        assert names == {d.name for d in SMALL} - {"And.symm"} | {"Nat.new"}


def test_an_interrupted_embedding_continues(
    small_index: Path, encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treewright.premises.index_builder._VECTORS_AT_ONCE", 2)

    class Interrupted(SentenceEncoder):
        def __init__(self) -> None:
            pass

        def encode_batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], np.ndarray]]:
            for number in range(3):
                yield [number], encoder.encode([texts[number]])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_vectors(small_index, Interrupted())
    assert build_vectors(small_index, encoder) == len(SMALL) - 2


def test_words_need_no_extra(small_index: Path) -> None:
    program = (
        "import sys\n"
        "for name in ('faiss', 'tokenizers', 'safetensors'): sys.modules[name] = None\n"
        "from treewright.premises.index import PremiseIndex\n"
        f"print(PremiseIndex.open({str(small_index)!r}).lexical('Nat.add_comm', 1)[0].name)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "Nat.add_comm\n", done.stderr


def test_without_the_extra_the_error_names_it(
    monkeypatch: pytest.MonkeyPatch, embedded: Path
) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingExtra, match=r"treewright\[premises\]"):
        vectors.require()
    with PremiseIndex.open(embedded) as index, pytest.raises(MissingExtra):
        index.search("Nat", 1)


def test_the_command_fuses(
    embedded: Path, treewright: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    done = treewright("premises", "search", "--path", str(embedded), "--json", "Nat.add_comm")
    assert done.returncode == 0, done.stderr
    assert '"name": "Nat.add_comm"' in done.stdout
    assert '"ranking": "fused"' in done.stdout
