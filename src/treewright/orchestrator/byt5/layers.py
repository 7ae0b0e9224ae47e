"""The parts of T5: RMS norm, gated GELU, attention with a bias by relative position."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

_CUBIC = 0.044715


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
