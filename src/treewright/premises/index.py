"""Searching a premise index.

`lexical` ranks by words and shape and needs no extra. `search` combines that with the ranking by
embeddings. Every result names its ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

import msgspec
import numpy as np
import numpy.typing as npt

from treewright.kernel.errors import UsageError
from treewright.premises.encoder import SentenceEncoder, in_words
from treewright.premises.lexical import LexicalIndex
from treewright.premises.store import VECTOR_INDEX, PremiseStore
from treewright.premises.vectors import VectorIndex

# The length of each ranking when two are fused.
_DEPTH = 100

Ranking = Literal["lexical", "semantic", "fused"]


class Premise(msgspec.Struct, frozen=True):
    """A declaration that may help. Scores are comparable only within one result."""

    name: str
    type: str
    module: str
    score: float
    kind: str = ""
    ranking: Ranking = "lexical"


class PremiseIndex:
    """An open index. Close it, or use it as a context manager."""

    def __init__(self, store: PremiseStore) -> None:
        self._store = store

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Open an index file. Raises UsageError if there is none."""
        return cls(PremiseStore(Path(path)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def __len__(self) -> int:
        return len(self._store)

    @property
    def path(self) -> Path:
        """The file."""
        return self._store.path

    @property
    def lean(self) -> str:
        """The version of Lean from which the declarations come."""
        return str(self._store.fact("lean") or "")

    @property
    def imports(self) -> tuple[str, ...]:
        """The modules whose declarations are in the index."""
        found = self._store.fact("imports")
        return tuple(found) if isinstance(found, list) else ()

    @property
    def is_searchable(self) -> bool:
        """Whether the ranking by words exists; an interrupted build has none yet."""
        return self._store.array("ids") is not None

    @property
    def has_embeddings(self) -> bool:
        """Whether the index can be searched by meaning."""
        return self._store.array(VECTOR_INDEX) is not None

    @cached_property
    def digest(self) -> str:
        """The sha256 of all names and types in order. Answers depend only on these."""
        return str(self._store.fact("digest") or self._store.digest())

    @cached_property
    def _lexical(self) -> tuple[npt.NDArray[np.int64], LexicalIndex]:
        return self._store.lexical()

    def lexical(self, query: str, k: int = 10) -> tuple[Premise, ...]:
        """Return the best by words and shape alone; about a millisecond for 40,000 premises."""
        return self._premises(self._lexical_ranks(query, k), "lexical")

    def semantic(self, query: str, k: int = 10) -> tuple[Premise, ...]:
        """Return the best by meaning alone; needs the extra `premises` and embeddings."""
        return self._premises(self._semantic_ranks(query, k), "semantic")

    def search(self, query: str, k: int = 10) -> tuple[Premise, ...]:
        """Return the best by both rankings together, by reciprocal rank."""
        depth = max(k, _DEPTH)
        rankings = (self._lexical_ranks(query, depth), self._semantic_ranks(query, depth))
        fused = fuse([[identifier for identifier, _ in ranking] for ranking in rankings], k)
        return self._premises(fused, "fused")

    @cached_property
    def _vectors(self) -> VectorIndex:
        data = self._store.array(VECTOR_INDEX)
        if data is None:
            raise UsageError(
                f"the premise index {self.path} has no embeddings; make them with `treewright "
                "premises build`, or rank by words alone (--lexical)"
            )
        return VectorIndex.from_bytes(data)

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        return SentenceEncoder()

    def _semantic_ranks(self, query: str, k: int) -> list[tuple[int, float]]:
        index = self._vectors
        return index.rank(self._encoder.encode([in_words(query)])[0], k)

    def _lexical_ranks(self, query: str, k: int) -> list[tuple[int, float]]:
        ids, index = self._lexical
        return [(int(ids[row]), score) for row, score in index.rank(query, k)]

    def _premises(self, ranked: list[tuple[int, float]], ranking: Ranking) -> tuple[Premise, ...]:
        found = []
        for identifier, score in ranked:
            row = self._store.premise(identifier)
            found.append(Premise(row.name, row.type, row.module, score, row.kind, ranking))
        return tuple(found)


CONSTANT = 60


def fuse(rankings: Sequence[Sequence[int]], k: int) -> list[tuple[int, float]]:
    """Return the best k by the sum of 1 / (60 + rank), ranks from 1; equal sums in order of id."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, identifier in enumerate(ranking, start=1):
            scores[identifier] = scores.get(identifier, 0.0) + 1 / (CONSTANT + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:k]
