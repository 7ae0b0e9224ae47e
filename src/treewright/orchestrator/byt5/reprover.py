"""ReProver's two models: premises by an encoder, tactics by an encoder and decoder.

A directory with `generator/` and, for retrieval, `retriever/`, each in Hugging Face's layout.
Candidates come from the premise index; the retriever puts them in order.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from treewright.kernel.errors import UsageError
from treewright.lean.verify.restrictions import find_escapes
from treewright.orchestrator.byt5.beam import generate
from treewright.orchestrator.byt5.layers import Floats
from treewright.orchestrator.byt5.model import T5, weight_files
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
        self._lock = threading.Lock()

    @property
    def retrieves(self) -> bool:
        return self._retriever is not None

    def rerank(
        self, state: str, candidates: Sequence[Premise], stop: Callable[[], bool]
    ) -> list[Premise]:
        """Return the candidates nearest to the state, nearest first."""
        if self._retriever is None:
            return []
        with blas.one_thread():
            wanted = self._retriever.embed(state, INPUT_LIMIT, stop)
            nearness = [float(self._premise(p, stop) @ wanted) for p in candidates]
        order = np.argsort(-np.array(nearness), kind="stable")[:PREMISES]
        return [candidates[int(place)] for place in order]

    def _premise(self, premise: Premise, stop: Callable[[], bool]) -> Floats:
        text = serialised(premise)
        if text not in self._known:
            assert self._retriever is not None
            vector = self._retriever.embed(text, INPUT_LIMIT, stop)
            with self._lock:
                self._known[text] = vector
        return self._known[text]

    def tactics(
        self, state: str, premises: Sequence[Premise], width: int, stop: Callable[[], bool]
    ) -> list[Suggestion]:
        """Return complete, distinct and harmless tactics of the generator, likely ones first."""
        text = augmented(state, premises, INPUT_LIMIT)
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


def serialised(premise: Premise) -> str:
    """Return a premise in the models' form: its name in marks, then its type."""
    return f"<a>{premise.name}</a> : {' '.join(premise.type.split())}"


def augmented(state: str, premises: Sequence[Premise], limit: int) -> str:
    """Return the state after as many premises as fit, with the nearest one right before it."""
    room = limit - 1 - len(state.encode())
    text = state
    for premise in premises:
        block = f"{serialised(premise)}\n\n"
        size = len(block.encode())
        if size <= room:
            room -= size
            text = block + text
    return text
