"""ByT5 against the architecture written out token by token, and the promises of a beam search."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from tests.orchestrator.byt5_models import CONFIG, speaking, tiny
from treewright.kernel.errors import UsageError
from treewright.orchestrator.byt5 import model as byt5
from treewright.orchestrator.byt5.model import T5, Stopped
from treewright.orchestrator.byt5.reprover import generate

GOAL = "n : Nat\n⊢ n + 0 = n"


class Plain:
    """T5 in float64, one vector at a time, without a cache."""

    def __init__(self, directory: Path) -> None:
        loaded = load_file(directory / "model.safetensors")
        self.w = {name: array.astype(np.float64) for name, array in loaded.items()}
        self.config = json.loads((directory / "config.json").read_text())

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        return x / math.sqrt(sum(v * v for v in x) / len(x) + 1e-6) * self.w[f"{name}.weight"]

    def bucket(self, distance: int, bidirectional: bool) -> int:
        count, furthest = 8, 20
        start = 0
        if bidirectional:
            count //= 2
            start = count if distance > 0 else 0
            distance = abs(distance)
        else:
            distance = max(-distance, 0)
        exact = count // 2
        if distance < exact:
            return start + distance
        far = math.log(distance / exact) / math.log(furthest / exact) * (count - exact)
        return start + min(exact + int(far), count - 1)

    def attention(self, own, others, name, side=None, causal=False) -> list[np.ndarray]:
        size, heads = self.config["d_kv"], self.config["num_heads"]
        found = []
        for place, x in enumerate(own):
            query = self.w[f"{name}.q.weight"] @ x
            joined = []
            for head in range(heads):
                part = slice(head * size, (head + 1) * size)
                scores, values = [], []
                for other, y in enumerate(others):
                    if causal and other > place:
                        continue
                    score = query[part] @ (self.w[f"{name}.k.weight"] @ y)[part]
                    if side:
                        table = (
                            f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
                        )
                        score += self.w[table][self.bucket(other - place, not causal)][head]
                    scores.append(math.exp(score))
                    values.append((self.w[f"{name}.v.weight"] @ y)[part])
                joined.append(sum(s * v for s, v in zip(scores, values, strict=True)) / sum(scores))
            found.append(self.w[f"{name}.o.weight"] @ np.concatenate(joined))
        return found

    def feed(self, x: np.ndarray, name: str) -> np.ndarray:
        inside = self.norm(x, f"{name}.layer_norm")
        gate = self.w[f"{name}.DenseReluDense.wi_0.weight"] @ inside
        gate = np.array(
            [
                0.5 * g * (1 + math.tanh(math.sqrt(2 / math.pi) * (g + 0.044715 * g**3)))
                for g in gate
            ]
        )
        linear = self.w[f"{name}.DenseReluDense.wi_1.weight"] @ inside
        return x + self.w[f"{name}.DenseReluDense.wo.weight"] @ (gate * linear)

    def encode(self, ids: list[int]) -> list[np.ndarray]:
        hidden = [self.w["shared.weight"][i] for i in ids]
        for number in range(self.config["num_layers"]):
            block = f"encoder.block.{number}"
            inside = [self.norm(x, f"{block}.layer.0.layer_norm") for x in hidden]
            mixed = self.attention(inside, inside, f"{block}.layer.0.SelfAttention", "encoder")
            hidden = [x + m for x, m in zip(hidden, mixed, strict=True)]
            hidden = [self.feed(x, f"{block}.layer.1") for x in hidden]
        return [self.norm(x, "encoder.final_layer_norm") for x in hidden]

    def chances(self, encoded: list[np.ndarray], ids: list[int]) -> np.ndarray:
        """Log-probabilities behind a text, without a cache."""
        hidden = [self.w["shared.weight"][i] for i in [0, *ids]]
        for number in range(self.config["num_decoder_layers"]):
            block = f"decoder.block.{number}"
            inside = [self.norm(x, f"{block}.layer.0.layer_norm") for x in hidden]
            name = f"{block}.layer.0.SelfAttention"
            mixed = self.attention(inside, inside, name, "decoder", causal=True)
            hidden = [x + m for x, m in zip(hidden, mixed, strict=True)]
            inside = [self.norm(x, f"{block}.layer.1.layer_norm") for x in hidden]
            mixed = self.attention(inside, encoded, f"{block}.layer.1.EncDecAttention")
            hidden = [x + m for x, m in zip(hidden, mixed, strict=True)]
            hidden = [self.feed(x, f"{block}.layer.2") for x in hidden]
        final = self.norm(hidden[-1], "decoder.final_layer_norm")
        if self.config["tie_word_embeddings"]:
            logits = self.w["shared.weight"] @ final / math.sqrt(self.config["d_model"])
        else:
            logits = self.w["lm_head.weight"] @ final
        return logits - math.log(sum(math.exp(v) for v in logits))


@pytest.fixture(scope="module", params=[False, True], ids=["untied", "tied"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("model"), tied=request.param)


@pytest.fixture(scope="module")
def model(directory: Path) -> T5:
    return T5(directory)


def test_the_encoder_is_the_one_written_out(model: T5, directory: Path) -> None:
    ids = byt5.encode_text("⊢ n + 0 = n, and more")
    plain = Plain(directory).encode(ids)
    assert np.abs(model.encode(ids)[0] - np.array(plain)).max() < 1e-4
    mean = np.mean(plain, axis=0)
    embedded = model.embed("⊢ n + 0 = n, and more", 100)
    assert np.abs(embedded - mean / np.linalg.norm(mean)).max() < 1e-5


def test_steps_with_a_cache_are_the_whole_computed_anew(model: T5, directory: Path) -> None:
    ids = byt5.encode_text(GOAL)
    plain = Plain(directory)
    encoded = plain.encode(ids)
    cache = model.start(model.encode(ids))
    last, text = model.first_token, byt5.encode_text("simp at")[:-1]
    for place, token in enumerate([*text, 0]):
        chances, cache = model.step(cache, [last])
        assert np.abs(chances[0] - plain.chances(encoded, text[:place])).max() < 1e-3
        last = token


def test_hypotheses_side_by_side_do_not_touch(model: T5) -> None:
    encoded = model.encode(byt5.encode_text(GOAL))
    _, first = model.step(model.start(encoded), [0])
    alone, _ = model.step(first, [50])
    together, _ = model.step(first.select([0, 0, 0]), [90, 50, 7])
    assert np.abs(together[1] - alone[0]).max() < 1e-5


@pytest.mark.parametrize("text", [GOAL, "x", ""])
def test_a_beam_of_one_is_greedy(model: T5, text: str) -> None:
    cache = model.start(model.encode(byt5.encode_text(text)))
    ids: list[int] = []
    score, finished = 0.0, False
    for _ in range(20):
        chances, cache = model.step(cache, [ids[-1] if ids else 0])
        token = int(np.argmax(chances[0]))
        score += float(chances[0][token])
        if token == byt5.END:
            finished = True
            break
        ids.append(token)
    (found,) = generate(model, text, width=1, max_length=20)
    assert (found.ids, found.finished) == (tuple(ids), finished)
    assert found.score == pytest.approx(score, abs=1e-4)


def test_a_beam_of_one_goes_on_where_going_on_is_likelier(tmp_path: Path) -> None:
    """Even if the longer text is less likely as a whole than the end would have been."""
    directory = speaking(tmp_path, "ab", "")
    weights = load_file(directory / "model.safetensors")
    weights["lm_head.weight"][byt5.END, 0] = 4.98  # at first, nearly as likely as `a`
    from_a = weights["lm_head.weight"][ord("b") + 3] / 5.0
    for letter in "xyz":
        weights["lm_head.weight"][ord(letter) + 3] = 4.9 * from_a
    save_file(weights, directory / "model.safetensors")
    model = T5(directory)
    assert [written.text for written in generate(model, "?", width=1)] == ["ab"]
    assert generate(model, "?", width=2)[0].text == ""


def test_scores_are_sums_of_log_probabilities(model: T5) -> None:
    found = generate(model, GOAL, width=4, max_length=8)
    assert len({written.ids for written in found}) == len(found) == 4
    assert [w.score for w in found] == sorted((w.score for w in found), reverse=True)
    for written in found:
        cache = model.start(model.encode(byt5.encode_text(GOAL)))
        total, last = 0.0, 0
        for token in [*written.ids, *([byt5.END] if written.finished else [])]:
            chances, cache = model.step(cache, [last])
            total += float(chances[0][token])
            last = token
        assert written.score == pytest.approx(total, abs=1e-3)
    assert generate(model, GOAL, width=4, max_length=8) == found, "the same every time"


def test_a_wide_beam_finds_the_best_of_all_short_texts(tmp_path: Path) -> None:
    """With one token and an end, every text can be looked at."""
    directory = tiny(tmp_path / "model", seed=3, scale=0.3)
    model = T5(directory)
    encoded = model.encode(byt5.encode_text("q"))
    chances, cache = model.step(model.start(encoded), [0])
    ends = [float(chances[0][byt5.END])]
    everything = cache.select([0] * 384)
    second, _ = model.step(everything, list(range(384)))
    ends += [float(chances[0][t] + second[t][byt5.END]) for t in range(384) if t != byt5.END]
    found = [w for w in generate(model, "q", width=384, max_length=2) if w.finished]
    assert found[0].score == pytest.approx(max(ends), abs=1e-4)


def test_work_can_be_stopped(model: T5) -> None:
    asked: list[int] = []

    def stop() -> bool:
        asked.append(1)
        return len(asked) > 5

    with pytest.raises(Stopped):
        generate(model, GOAL, stop=stop)
    assert len(asked) == 6


@given(st.text())
def test_texts_survive_the_tokens(text: str) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    ids = byt5.encode_text(text)
    assert ids == [*(byte + 3 for byte in data), 1]
    assert byt5.decode_text([0, *ids, 383]) == text
    assert byt5.encode_text(text, 4) == ids[-4:]


def test_buckets_of_distances() -> None:
    distance = np.arange(-200, 201)
    for bidirectional in (True, False):
        found = byt5.buckets(distance, bidirectional=bidirectional, count=32, furthest=128)
        assert found.min() == 0
        assert found.max() == 31
    one_way = byt5.buckets(distance, bidirectional=False, count=32, furthest=128)
    assert (one_way[distance >= 0] == 0).all(), "the future has no distance"
    assert one_way[distance == -5] == 5
    assert (np.diff(one_way[distance <= 0]) <= 0).all()


def test_shards_are_one_model(directory: Path, tmp_path: Path, model: T5) -> None:
    weights = load_file(directory / "model.safetensors")
    names = sorted(weights)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in parts.items():
        save_file({name: weights[name] for name in part}, tmp_path / file)
    where = {name: file for file, part in parts.items() for name in part}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    (tmp_path / "config.json").write_text((directory / "config.json").read_text())
    assert generate(T5(tmp_path), "x", width=2, max_length=5) == generate(
        model, "x", width=2, max_length=5
    )


def test_what_is_no_such_model_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"config\.json"):
        T5(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"feed_forward_proj": "relu"}))
    with pytest.raises(UsageError, match="gated-gelu"):
        T5(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    with pytest.raises(UsageError, match="safe_serialization"):
        T5(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"nothing of the sort")
    with pytest.raises(UsageError, match="cannot read the weights"):
        T5(tmp_path)
    retriever = T5(tiny(tmp_path / "encoder", decoder=False))
    assert not retriever.can_generate
