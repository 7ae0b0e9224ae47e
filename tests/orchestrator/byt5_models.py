"""Tiny ByT5 models with random weights, saved as Hugging Face saves them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

CONFIG = {
    "model_type": "t5",
    "feed_forward_proj": "gated-gelu",
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 24,
    "num_heads": 3,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "vocab_size": 384,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 20,
    "layer_norm_epsilon": 1e-6,
    "tie_word_embeddings": False,
    "decoder_start_token_id": 0,
}


def tiny(
    directory: Path,
    *,
    seed: int = 0,
    tied: bool = False,
    decoder: bool = True,
    scale: float = 0.6,
) -> Path:
    """Writes a model and returns its directory."""
    random = np.random.default_rng(seed)
    c = CONFIG | {"tie_word_embeddings": tied}
    inner = c["num_heads"] * c["d_kv"]
    weights: dict[str, np.ndarray] = {}

    def add(name: str, *shape: int) -> None:
        weights[name] = (scale * random.normal(size=shape)).astype(np.float32)

    def attention(name: str) -> None:
        for part in "qkv":
            add(f"{name}.{part}.weight", inner, c["d_model"])
        add(f"{name}.o.weight", c["d_model"], inner)

    add("shared.weight", c["vocab_size"], c["d_model"])
    for side in ("encoder", "decoder") if decoder else ("encoder",):
        bias = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        add(f"{side}.{bias}", c["relative_attention_num_buckets"], c["num_heads"])
        for number in range(c["num_layers"]):
            block = f"{side}.block.{number}"
            attention(f"{block}.layer.0.SelfAttention")
            if side == "decoder":
                attention(f"{block}.layer.1.EncDecAttention")
            last = 2 if side == "decoder" else 1
            for layer in range(last + 1):
                add(f"{block}.layer.{layer}.layer_norm.weight", c["d_model"])
            dense = f"{block}.layer.{last}.DenseReluDense"
            add(f"{dense}.wi_0.weight", c["d_ff"], c["d_model"])
            add(f"{dense}.wi_1.weight", c["d_ff"], c["d_model"])
            add(f"{dense}.wo.weight", c["d_model"], c["d_ff"])
        add(f"{side}.final_layer_norm.weight", c["d_model"])
    if decoder and not tied:
        add("lm_head.weight", c["vocab_size"], c["d_model"])
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(c))
    save_file(weights, directory / "model.safetensors")
    return directory


def speaking(directory: Path, *words: str) -> Path:
    """A model that says these words, the first most likely, for every input.

    All attention and feed-forward weights are zero, so the next letter depends on the last
    alone; no letter may occur twice in all the words together.
    """
    letters = "".join(words)
    assert len(set(letters)) == len(letters) < CONFIG["d_model"]
    tiny(directory)
    file = directory / "model.safetensors"
    from safetensors.numpy import load_file

    weights = {
        name: np.ones_like(w) if "norm" in name else np.zeros_like(w)
        for name, w in load_file(file).items()
    }
    number = {0: 0} | {ord(letter) + 3: place for place, letter in enumerate(letters, start=1)}
    for token, place in number.items():
        weights["shared.weight"][token, place] = 1.0
    for rank, word in enumerate(words):
        spoken = [0, *(ord(letter) + 3 for letter in word), 1]
        for place, (last, following) in enumerate(itertools.pairwise(spoken)):
            weights["lm_head.weight"][following, number[last]] = 5.0 - (rank if place == 0 else 0)
    save_file(weights, file)
    return directory
