"""ReProver's two models: premises by an encoder, tactics by an encoder and decoder.

A directory with `generator/` and, for retrieval, `retriever/`, each in Hugging Face's layout.
Candidates come from the premise index; the retriever puts them in order. A beam search finds the
most likely texts of the generator.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from treewright.kernel.errors import UsageError
from treewright.lean.verify.restrictions import find_escapes
from treewright.orchestrator.byt5.model import (
    END,
    T5,
    Floats,
    decode_text,
    encode_text,
    never,
    weight_files,
)
from treewright.premises import blas
from treewright.premises.index import Premise

VARIABLE = "TREEWRIGHT_REPROVER"
INPUT_LIMIT = 1024
PREMISES = 12
CANDIDATES = 24
_MARKS = re.compile(r"</?a>")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A tactic and the sum of the log-probabilities of its bytes."""

    tactic: str
    score: float


def configured_directory() -> Path | None:
    """Return the directory that `TREEWRIGHT_REPROVER` names."""
    value = os.environ.get(VARIABLE, "").strip()
    return Path(value).expanduser() if value else None


def has_model(directory: Path) -> bool:
    """Return whether a directory has a model, without reading it."""
    return (directory / "config.json").is_file() and any(weight_files(directory))


class ReProver:
    """The loaded models. Several threads may use them."""

    def __init__(self, directory: Path) -> None:
        self._generator = T5(directory / "generator")
        if not self._generator.can_generate:
            raise UsageError(f"{directory / 'generator'} has no decoder; is it the retriever?")
        retriever = directory / "retriever"
        self._retriever = T5(retriever) if has_model(retriever) else None
        self._known: dict[str, Floats] = {}

    @property
    def retrieves(self) -> bool:
        """Whether there is a retriever."""
        return self._retriever is not None

    def rerank(
        self, state: str, candidates: Sequence[Premise], stop: Callable[[], bool]
    ) -> list[Premise]:
        """Return the candidates nearest to the state, nearest first."""
        if self._retriever is None:
            return []
        nearness: list[float] = []
        with blas.one_thread():
            wanted = self._retriever.embed(state, INPUT_LIMIT, stop)
            for text in map(describe_premise, candidates):
                if text not in self._known:
                    self._known[text] = self._retriever.embed(text, INPUT_LIMIT, stop)
                nearness.append(float(self._known[text] @ wanted))
        order = np.argsort(-np.array(nearness), kind="stable")[:PREMISES]
        return [candidates[int(place)] for place in order]

    def tactics(
        self, state: str, premises: Sequence[Premise], width: int, stop: Callable[[], bool]
    ) -> list[Suggestion]:
        """Return complete, distinct and harmless tactics of the generator, likely ones first."""
        text = add_premises(state, premises, INPUT_LIMIT)
        with blas.one_thread():
            written = generate(
                self._generator, text, width=width, input_limit=INPUT_LIMIT, stop=stop
            )
        found: dict[str, float] = {}
        for one in written:
            tactic = _MARKS.sub("", one.text).strip()
            if one.finished and tactic and not find_escapes(tactic):
                found.setdefault(tactic, one.score)
        return [Suggestion(tactic, score) for tactic, score in found.items()]


def describe_premise(premise: Premise) -> str:
    """Return a premise in the models' form: its name in marks, then its type."""
    return f"<a>{premise.name}</a> : {' '.join(premise.type.split())}"


def add_premises(state: str, premises: Sequence[Premise], limit: int) -> str:
    """Return the state after as many premises as fit, with the nearest one right before it."""
    room = limit - 1 - len(state.encode())
    text = state
    for premise in premises:
        block = f"{describe_premise(premise)}\n\n"
        size = len(block.encode())
        if size <= room:
            room -= size
            text = block + text
    return text


# -- beam search -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    """A generated text, its ids without the end mark, and the sum of its log-probabilities.

    A text that reached the length limit before its end is not `finished`.
    """

    text: str
    ids: tuple[int, ...]
    score: float
    finished: bool


def generate(
    model: T5,
    text: str,
    *,
    width: int = 4,
    max_length: int = 128,
    input_limit: int = 1024,
    stop: Callable[[], bool] = never,
) -> list[Written]:
    """Return up to `width` texts, the most likely first. A width of one is greedy.

    The sum of log-probabilities decreases as a text grows. The search is therefore over when no
    open text is better than the worst of `width` finished ones.
    """
    encoded = model.encode(encode_text(text, input_limit), stop)
    cache = model.start(encoded)
    open_texts: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    finished: list[tuple[float, tuple[int, ...]]] = []
    for _ in range(max_length):
        last = [ids[-1] if ids else model.first_token for _, ids in open_texts]
        chances, cache = model.step(cache, last, stop)
        scores = np.array([score for score, _ in open_texts])[:, None] + chances
        vocabulary = scores.shape[1]
        order = np.argsort(-scores, axis=None, kind="stable")[: 2 * width]
        continued: list[tuple[int, float, tuple[int, ...]]] = []
        for rank, place in enumerate(order):
            row, token = divmod(int(place), vocabulary)
            score = float(scores[row, token])
            if token == END:
                if rank < width:
                    finished.append((score, open_texts[row][1]))
            elif len(continued) < width:
                continued.append((row, score, (*open_texts[row][1], token)))
        finished = sorted(finished, key=lambda item: -item[0])[:width]
        open_texts = [(score, ids) for _, score, ids in continued]
        cache = cache.select([row for row, _, _ in continued])
        if len(finished) == width and finished[-1][0] >= open_texts[0][0]:
            open_texts = []
            break
    ended = [Written(decode_text(list(ids)), ids, score, True) for score, ids in finished]
    cut = [Written(decode_text(list(ids)), ids, score, False) for score, ids in open_texts]
    return sorted([*ended, *cut], key=lambda item: -item.score)[:width]
