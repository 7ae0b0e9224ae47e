"""The ranking by meaning: unit vectors in a FAISS index, nearest by cosine.

It is exact up to `EXACT_LIMIT` premises. Beyond that, the vectors are in cells, and a query looks
into the nearest cells: about one in thirty.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from treewright.kernel.errors import MissingExtra

EXACT_LIMIT = 60_000
_TRAINING_PER_CELL = 40
_TRAINING_ROUNDS = 8
_PROBED_SHARE = 1 / 30
_SEED = 1


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtra("ranking by meaning", "premises") from None
    return faiss


def require() -> None:
    """Raise MissingExtra if FAISS is not installed."""
    _faiss()


class VectorIndex:
    """A FAISS index of vectors under given ids."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def __len__(self) -> int:
        return self._index.ntotal

    @classmethod
    def build(cls, ids: npt.NDArray[np.int64], vectors: npt.NDArray[np.float32]) -> VectorIndex:
        """Return an index of vectors."""
        faiss = _faiss()
        count, dimension = vectors.shape
        flat = faiss.IndexFlatIP(dimension)
        if count <= EXACT_LIMIT:
            index = faiss.IndexIDMap(flat)
        else:
            cells = int(4 * math.sqrt(count))
            index = faiss.IndexIVFFlat(flat, dimension, cells, faiss.METRIC_INNER_PRODUCT)
            index.cp.seed = _SEED
            index.cp.niter = _TRAINING_ROUNDS
            index.cp.max_points_per_centroid = _TRAINING_PER_CELL
            index.nprobe = max(8, int(cells * _PROBED_SHARE))
            index.train(vectors)
        index.add_with_ids(vectors, ids)
        return cls(index)

    @classmethod
    def from_bytes(cls, data: bytes) -> VectorIndex:
        """Return an index that `to_bytes` wrote."""
        return cls(_faiss().deserialize_index(np.frombuffer(data, dtype=np.uint8)))

    def to_bytes(self) -> bytes:
        """Return the index as bytes, for the file."""
        return _faiss().serialize_index(self._index).tobytes()

    def rank(self, vector: npt.NDArray[np.float32], k: int) -> list[tuple[int, float]]:
        """Return the ids of the k nearest vectors with their cosines, nearest first."""
        # One query is too little work for several threads; idle threads spin while they wait.
        _faiss().omp_set_num_threads(1)
        scores, ids = self._index.search(vector.reshape(1, -1), k)
        return [(int(i), float(s)) for i, s in zip(ids[0], scores[0], strict=True) if i >= 0]
