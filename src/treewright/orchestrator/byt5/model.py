"""ByT5: its vocabulary, and an encoder and decoder over weights in Hugging Face's layout.

`config.json` and `model.safetensors` (or its shards). The decoder keeps keys and values, so a
step costs one position. Work can be stopped between layers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from treewright.kernel.errors import MissingExtra, UsageError

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

_CUBIC = 0.044715
PAD, END, UNKNOWN = 0, 1, 2
_OFFSET = 3
_BYTES = 256
WEIGHTS = "model.safetensors"
_SHARDS = "model.safetensors.index.json"
_EMBEDDINGS = ("shared.weight", "encoder.embed_tokens.weight")
_LOOKED_UP = ("shared.weight", "embed_tokens.weight", "relative_attention_bias.weight")


class Stopped(Exception):
    """The caller has stopped the work."""


def never() -> bool:
    """Return that the work is not stopped."""
    return False


@dataclass(slots=True)
class Cache:
    """The keys and values of every decoder layer, for the text so far and the encoded input."""

    own: list[tuple[Floats, Floats]]
    cross: list[tuple[Floats, Floats]]
    length: int = 0

    def select(self, rows: Sequence[int]) -> Cache:
        """Return the cache of some hypotheses, in the order of `rows`."""
        index = list(rows)
        return Cache([(k[index], v[index]) for k, v in self.own], self.cross, self.length)


class T5:
    """One model. Between layers the work ends with `Stopped` if `stop()` is true."""

    def __init__(self, directory: Path) -> None:
        config = _config(directory)
        self._weights = _weights(directory)
        self._heads: int = config["num_heads"]
        self._epsilon: float = config.get("layer_norm_epsilon", 1e-6)
        self._buckets: int = config.get("relative_attention_num_buckets", 32)
        self._furthest: int = config.get("relative_attention_max_distance", 128)
        self._encoder_layers: int = config["num_layers"]
        self._decoder_layers: int = config.get("num_decoder_layers") or config["num_layers"]
        self._tied: bool = config.get("tie_word_embeddings", True)
        self.first_token: int = config.get("decoder_start_token_id", PAD)
        self.dimension: int = config["d_model"]
        names = [name for name in _EMBEDDINGS if name in self._weights]
        if not names:
            raise UsageError(f"the model has no weights {_EMBEDDINGS[0]}; is it a T5?")
        self._embedding = self._weights[names[0]]

    @property
    def can_generate(self) -> bool:
        """Whether the model has a decoder."""
        return "decoder.final_layer_norm.weight" in self._weights

    def _linear(self, values: Floats, name: str) -> Floats:
        return values @ self._weights[f"{name}.weight"]

    def _norm(self, values: Floats, name: str) -> Floats:
        return rms_norm(values, self._weights[f"{name}.weight"], self._epsilon)

    def _feed_forward(self, hidden: Floats, name: str) -> Floats:
        inside = self._norm(hidden, f"{name}.layer_norm")
        dense = f"{name}.DenseReluDense"
        gate = gelu(self._linear(inside, f"{dense}.wi_0"))
        return hidden + self._linear(gate * self._linear(inside, f"{dense}.wi_1"), f"{dense}.wo")

    def _heads_of(self, values: Floats, name: str) -> Floats:
        return split_heads(self._linear(values, name), self._heads)

    def _bias(self, side: str, queries: range, keys: range) -> Floats:
        """Return the bias of the scores by distance, of shape (1, heads, queries, keys)."""
        distance = np.array(keys)[None, :] - np.array(queries)[:, None]
        bucket = buckets(
            distance,
            bidirectional=side == "encoder",
            count=self._buckets,
            furthest=self._furthest,
        )
        name = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        return self._weights[name][bucket].transpose(2, 0, 1)[None]

    # -- encoder --------------------------------------------------------------------------

    def encode(self, ids: Sequence[int], stop: Callable[[], bool] = never) -> Floats:
        """Return the encoded input, of shape (1, length, dimension)."""
        hidden = self._embedding[np.array(ids)][None]
        places = range(len(ids))
        bias = self._bias("encoder", places, places)
        for number in range(self._encoder_layers):
            if stop():
                raise Stopped
            block = f"encoder.block.{number}"
            inside = self._norm(hidden, f"{block}.layer.0.layer_norm")
            name = f"{block}.layer.0.SelfAttention"
            query, key, value = (self._heads_of(inside, f"{name}.{part}") for part in "qkv")
            mixed = join_heads(attend(query, key, value, bias))
            hidden = hidden + self._linear(mixed, f"{name}.o")
            hidden = self._feed_forward(hidden, f"{block}.layer.1")
        return self._norm(hidden, "encoder.final_layer_norm")

    def embed(self, text: str, limit: int, stop: Callable[[], bool] = never) -> Floats:
        """Return the mean of the encoded input, scaled to unit length, for the retriever."""
        mean = self.encode(encode_text(text, limit), stop)[0].mean(axis=0)
        return mean / np.linalg.norm(mean)

    # -- decoder --------------------------------------------------------------------------

    def start(self, encoded: Floats) -> Cache:
        """Return the cache of an empty text for an encoded input."""
        size = self._weights["decoder.block.0.layer.0.SelfAttention.k.weight"].shape[1]
        empty = np.zeros((1, self._heads, 0, size // self._heads), dtype=np.float32)
        cross = []
        for number in range(self._decoder_layers):
            name = f"decoder.block.{number}.layer.1.EncDecAttention"
            cross.append(
                (self._heads_of(encoded, f"{name}.k"), self._heads_of(encoded, f"{name}.v"))
            )
        return Cache([(empty, empty) for _ in cross], cross)

    def step(
        self, cache: Cache, last: Sequence[int], stop: Callable[[], bool] = never
    ) -> tuple[Floats, Cache]:
        """Return the log-probabilities of the next token of each hypothesis, and the new cache."""
        hidden = self._embedding[np.array(last)][:, None]
        length = cache.length + 1
        bias = self._bias("decoder", range(length - 1, length), range(length))
        own = []
        for number in range(self._decoder_layers):
            if stop():
                raise Stopped
            block = f"decoder.block.{number}"
            inside = self._norm(hidden, f"{block}.layer.0.layer_norm")
            name = f"{block}.layer.0.SelfAttention"
            query, new_key, new_value = (self._heads_of(inside, f"{name}.{p}") for p in "qkv")
            old_key, old_value = cache.own[number]
            key = np.concatenate((old_key, new_key), axis=2)
            value = np.concatenate((old_value, new_value), axis=2)
            own.append((key, value))
            mixed = join_heads(attend(query, key, value, bias))
            hidden = hidden + self._linear(mixed, f"{name}.o")
            inside = self._norm(hidden, f"{block}.layer.1.layer_norm")
            name = f"{block}.layer.1.EncDecAttention"
            key, value = cache.cross[number]
            mixed = attend(self._heads_of(inside, f"{name}.q"), key, value, None)
            hidden = hidden + self._linear(join_heads(mixed), f"{name}.o")
            hidden = self._feed_forward(hidden, f"{block}.layer.2")
        final = self._norm(hidden, "decoder.final_layer_norm")[:, 0]
        if self._tied:
            logits = (final * np.float32(self.dimension**-0.5)).astype(np.float32)
            logits = logits @ self._embedding.T
        else:
            logits = self._linear(final, "lm_head")
        return log_softmax(logits), Cache(own, cache.cross, length)


def _config(directory: Path) -> dict[str, Any]:
    try:
        config = json.loads((directory / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{directory} has no readable config.json: {error}") from error
    kind = config.get("feed_forward_proj", "relu")
    if config.get("model_type") != "t5" or kind != "gated-gelu":
        raise UsageError(
            f"{directory} is no ByT5 (model_type t5, feed_forward_proj gated-gelu), but "
            f"{config.get('model_type')} with {kind}"
        )
    return config


def weight_files(directory: Path) -> Iterator[Path]:
    """Yield the safetensors files of a model."""
    if (directory / _SHARDS).is_file():
        index = json.loads((directory / _SHARDS).read_text("utf-8"))
        yield from (directory / name for name in sorted(set(index["weight_map"].values())))
    elif (directory / WEIGHTS).is_file():
        yield directory / WEIGHTS


def _weights(directory: Path) -> dict[str, Floats]:
    try:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file
    except ImportError:
        raise MissingExtra("a ByT5 model", "premises") from None
    files = list(weight_files(directory))
    if not files:
        raise UsageError(
            f"{directory} has no {WEIGHTS}; convert the model with transformers: "
            "model.save_pretrained(directory, safe_serialization=True)"
        )
    found: dict[str, Floats] = {}
    for file in files:
        try:
            loaded = load_file(file)
        except (OSError, SafetensorError, KeyError, TypeError) as error:
            raise UsageError(f"cannot read the weights {file}: {error}") from error
        found |= {name: _laid_out(name, array) for name, array in loaded.items()}
    return found


def _laid_out(name: str, array: Floats) -> Floats:
    """Return a matrix transposed and contiguous, as `_linear` multiplies by it.

    Multiplying the few rows of a decoder step by a transposed view would take twice the time.
    """
    if array.ndim == 2 and not name.endswith(_LOOKED_UP):
        array = array.T
    return np.ascontiguousarray(array, dtype=np.float32)


# -- text as ids: the bytes of UTF-8 moved up by three special tokens ---------------------------


def encode_text(text: str, limit: int | None = None) -> list[int]:
    """Return the ids of a text with the end mark, at most the last `limit` ids."""
    ids = [byte + _OFFSET for byte in text.encode("utf-8")] + [END]
    return ids if limit is None else ids[-limit:]


def decode_text(ids: list[int]) -> str:
    """Return the text of ids without special tokens; broken UTF-8 is replaced."""
    data = bytes(i - _OFFSET for i in ids if _OFFSET <= i < _OFFSET + _BYTES)
    return data.decode("utf-8", "replace")


# -- the parts of T5 ---------------------------------------------------------------------------


def rms_norm(values: Floats, weight: Floats, epsilon: float) -> Floats:
    mean_square = np.mean(np.square(values), axis=-1, keepdims=True)
    return values / np.sqrt(mean_square + np.float32(epsilon)) * weight


def gelu(values: Floats) -> Floats:
    """Return the GELU in its tanh form, with which T5 was trained."""
    inner = np.float32(math.sqrt(2 / math.pi)) * (values + np.float32(_CUBIC) * values**3)
    return np.float32(0.5) * values * (1 + np.tanh(inner))


def softmax(scores: Floats) -> Floats:
    exponents = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponents / exponents.sum(axis=-1, keepdims=True)


def log_softmax(scores: Floats) -> Floats:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def split_heads(values: Floats, heads: int) -> Floats:
    """Return (batch, length, heads · size) values as (batch, heads, length, size)."""
    batch, length, width = values.shape
    return values.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)


def join_heads(values: Floats) -> Floats:
    batch, heads, length, size = values.shape
    return values.transpose(0, 2, 1, 3).reshape(batch, length, heads * size)


def attend(query: Floats, key: Floats, value: Floats, bias: Floats | None) -> Floats:
    """Return the attention of each head; T5 does not scale the scores."""
    scores = query @ key.swapaxes(-1, -2)
    if bias is not None:
        scores = scores + bias
    return softmax(scores) @ value


def buckets(distance: Integers, *, bidirectional: bool, count: int, furthest: int) -> Integers:
    """Return the bucket of each distance: the position of the key minus that of the query.

    Each near distance has a separate bucket; far distances share buckets on a logarithmic scale.
    """
    base = np.zeros_like(distance)
    if bidirectional:
        count //= 2
        base = np.where(distance > 0, count, 0)
        distance = np.abs(distance)
    else:
        distance = np.maximum(-distance, 0)
    exact = count // 2
    ratio = np.log(np.maximum(distance, 1) / exact) / math.log(furthest / exact)
    far = np.minimum(exact + (ratio * (count - exact)).astype(np.int64), count - 1)
    return base + np.where(distance < exact, distance, far)
