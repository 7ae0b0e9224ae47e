"""Beam search for the most likely texts of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from treewright.orchestrator.byt5 import tokens
from treewright.orchestrator.byt5.model import T5, never


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
    encoded = model.encode(tokens.encode(text, input_limit), stop)
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
            if token == tokens.END:
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
    ended = [Written(tokens.decode(list(ids)), ids, score, True) for score, ids in finished]
    cut = [Written(tokens.decode(list(ids)), ids, score, False) for score, ids in open_texts]
    return sorted([*ended, *cut], key=lambda item: -item.score)[:width]
