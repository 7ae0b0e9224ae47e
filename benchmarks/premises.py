"""How long a premise search takes, for as many premises as Mathlib has.

The texts are made up, with words as unevenly common as in a library; the vectors lie around two
thousand centres. What is measured is the real index: file, rankings, fusion, rows.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.measure import Row, Table
from treewright.lean.session.answers import Declaration
from treewright.premises.encoder import SentenceEncoder, declaration_in_words, in_words
from treewright.premises.index import PremiseIndex
from treewright.premises.index_builder import index_words
from treewright.premises.store import PremiseStore
from treewright.premises.vectors import VectorIndex

_QUERIES = (
    "x y : Nat\nh : x ≤ y\n⊢ x < y + 1",
    "xs ys : List W7\n⊢ (xs ++ ys).w3 = xs.w3 + ys.w3",
    "the w12 of a w40 is commutative",
    "∀ (a b c : W2), a * (b + c) = a * b + a * c",
)
_OPERATORS = ("+", "*", "-", "∧", "∨", "++", "∣")
_RELATIONS = ("=", "≤", "<", "↔", "≠")


def _declarations(count: int) -> list[Declaration]:
    random = np.random.default_rng(1)
    words = np.minimum(random.zipf(1.3, size=(count, 6)), 5000)
    choice = random.integers(1 << 30, size=(count, 4))
    found = []
    for number in range(count):
        a, b, c, d, e, f = words[number]
        operator = _OPERATORS[choice[number, 0] % len(_OPERATORS)]
        relation = _RELATIONS[choice[number, 1] % len(_RELATIONS)]
        left = f"a.w{c} {operator} W{d}.w{e} b"
        right = ("b", "a", f"W{f} a b", f"b {operator} a")[choice[number, 2] % 4]
        found.append(
            Declaration(
                f"W{a}.w{b}_w{c}_{number}",
                "theorem",
                f"Lib.W{a}",
                f"∀ {{α : Type u}} (a b : W{a}), W{f} a → {left} {relation} {right}",
            )
        )
    return found


def _vectors(count: int, dimension: int = 384) -> np.ndarray:
    random = np.random.default_rng(2)
    centres = random.normal(size=(2000, dimension)).astype(np.float32)
    found = centres[random.integers(len(centres), size=count)]
    found += random.normal(size=found.shape).astype(np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


class _Given:
    """Stands for the encoder: gives a vector at once."""

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors = vectors
        self._turn = 0

    def encode(self, _texts: list[str]) -> np.ndarray:
        self._turn += 1
        return self._vectors[self._turn % len(self._vectors)][None]


def _milliseconds(action, turns: int, clock=time.perf_counter) -> float:
    taken = []
    for turn in range(turns):
        started = clock()
        action(_QUERIES[turn % len(_QUERIES)])
        taken.append(1000 * (clock() - started))
    return median(taken)


def _index(path: Path, declarations: list[Declaration], vectors: np.ndarray) -> PremiseIndex:
    with PremiseStore(path, write=True) as store:
        store.put(declarations)
        index_words(store)
        ids = np.array([identifier for identifier, _, _ in store.documents()], dtype=np.int64)
        store.put_vector_index(VectorIndex.build(ids, vectors).to_bytes())
    index = PremiseIndex.open(path)
    index.__dict__["_encoder"] = _Given(vectors[:: len(vectors) // 50])
    return index


def _full_text_search(path: Path, declarations: list[Declaration]):
    """SQLite's own ranking over the same words, for comparison."""
    db = sqlite3.connect(path)
    db.execute("CREATE VIRTUAL TABLE texts USING fts5(name, type)")
    db.executemany("INSERT INTO texts VALUES (?, ?)", [(d.name, d.type) for d in declarations])

    def search(query: str) -> None:
        words = {f'"{w}"' for w in query.replace('"', "").split() if any(map(str.isalnum, w))}
        db.execute(
            "SELECT name FROM texts WHERE texts MATCH ? ORDER BY rank LIMIT 10",
            (" OR ".join(sorted(words)),),
        ).fetchall()

    return search


def premises(quick: bool) -> Table:
    small, large = (4_000, 20_000) if quick else (40_000, 200_000)
    turns = 40 if quick else 200
    declarations, vectors = _declarations(large), _vectors(large)
    with tempfile.TemporaryDirectory() as directory:
        few = _index(Path(directory) / "few.db", declarations[:small], vectors[:small])
        many = _index(Path(directory) / "many.db", declarations, vectors)
        full_text = _full_text_search(Path(directory) / "fts.db", declarations)
        for warm in (few.search, many.search, full_text):
            warm(_QUERIES[0])
        lexical_few = _milliseconds(lambda q: few.lexical(q, 10), turns)
        lexical_many = _milliseconds(lambda q: many.lexical(q, 10), turns)
        fused = _milliseconds(lambda q: many.search(q, 10), turns)
        fts = _milliseconds(full_text, turns // 4)
        brute = _milliseconds(lambda _: np.argpartition(vectors @ vectors[0], -10), turns // 4)
        near = _milliseconds(lambda _: many._vectors.rank(vectors[0], 100), turns)
        recall = _recall(many._vectors, vectors)
        few.close()
        many.close()
    encoder = SentenceEncoder()
    embedding = _milliseconds(lambda q: encoder.encode([in_words(q)]), turns // 4)
    processor = _milliseconds(
        lambda q: encoder.encode([in_words(q)]), turns // 4, time.process_time
    )
    rate = _rate(encoder, declarations[: 200 if quick else 2000])
    rows = [
        Row(f"by words, {small:,} premises", lexical_few, "ms", target=5.0),
        Row(f"by words, {large:,}", lexical_many, "ms", "FTS5", lexical_many / fts),
        Row(f"SQLite FTS5 (bm25), {large:,}", fts, "ms"),
        Row(f"nearest 100 vectors, {large:,}", near, "ms", "brute force", near / brute),
        Row("all products with numpy", brute, "ms"),
        Row(f"fused, without the query's embedding, {large:,}", fused, "ms", target=20.0),
        Row("the query's embedding", embedding, "ms"),
        Row("the same in processor time", processor, "ms"),
        Row("fused and embedding together", fused + embedding, "ms", target=20.0),
    ]
    note = (
        f"{100 * recall:.0f} % of the 10 nearest vectors found; "
        f"{rate:.0f} declarations embedded per second of processor time."
    )
    return Table("premises", "Premise search", rows, note)


def _recall(index: VectorIndex, vectors: np.ndarray) -> float:
    """Ids begin at 1 in a new index, in the order of the vectors."""
    rows = range(0, len(vectors), len(vectors) // 50)
    hits = 0
    for row in rows:
        exact = {int(i) + 1 for i in np.argsort(-(vectors @ vectors[row]))[:10]}
        hits += len(exact & {i for i, _ in index.rank(vectors[row], 10)})
    return hits / (10 * len(rows))


def _rate(encoder: SentenceEncoder, declarations: list[Declaration]) -> float:
    texts = [declaration_in_words(d.name, d.type or "") for d in declarations]
    started = time.process_time()
    encoder.encode(texts)
    return len(texts) / (time.process_time() - started)
