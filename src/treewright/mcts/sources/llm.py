"""Tactics from a language model behind an OpenAI-compatible endpoint.

A model that does not answer costs its suggestions and a warning, never the run.
"""

from __future__ import annotations

import asyncio
import importlib.util
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from treewright.kernel import http_client, jsontext
from treewright.kernel.errors import MissingExtra
from treewright.lean.escapes import find_escapes
from treewright.mcts.records import Candidate, GoalView
from treewright.mcts.sources.base import NOTHING, AskingStopped, Suggestions, rank_priors
from treewright.mcts.sources.cached import goal_text

_SYSTEM = (
    "You write Lean 4 tactics. For the goal you are given, answer with up to {count} single "
    "tactics that may come next, the best first, one a line, without numbers or explanations."
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_LONGEST_TACTIC = 300


class Model(msgspec.Struct, frozen=True):
    """Where the model is and how it is asked. `url` ends before `/chat/completions`."""

    url: str
    model: str
    key: str = ""
    temperature: float = 0.2
    seed: int = 0
    timeout_seconds: float = 30.0
    count: int = 8
    max_tokens: int = 400


class LlmTactics:
    """Asks a model once a goal. `warnings` says what went wrong so far."""

    name = "llm"
    overlaps = True

    def __init__(self, model: Model, warn: Callable[[str], None] = lambda text: None) -> None:
        if importlib.util.find_spec("httpx") is None:
            raise MissingExtra("tactics from a language model", "llm")
        self._model = model
        self._lock = threading.Lock()
        self.warnings: list[str] = []
        self._warn = warn
        self._stop: Callable[[], bool] = lambda: False

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        if round_number > 0:
            return NOTHING
        model = self._model
        try:
            reply = asyncio.run(self._post(goals))
        except TimeoutError:
            return self._nothing(f"did not answer in {model.timeout_seconds:g} s")
        except http_client.NoReply as none:
            return self._nothing(str(none))
        except http_client.Cancelled:
            raise AskingStopped from None
        if not reply.ok:
            return self._nothing(f"answered {reply.status}")
        try:
            text = jsontext.decode(reply.body)["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError):
            return self._nothing("the answer is not a chat completion")
        tactics = parse(text if isinstance(text, str) else "")[: model.count]
        if not tactics:
            return self._nothing("the answer has no tactic in it")
        priors = rank_priors(len(tactics))
        return Suggestions(
            tuple(Candidate(t, p, self.name) for t, p in zip(tactics, priors, strict=True))
        )

    def stop_when(self, stop: Callable[[], bool]) -> None:
        """A question that waits when `stop` becomes true is given up, by AskingStopped."""
        self._stop = stop

    async def _post(self, goals: Sequence[GoalView]) -> http_client.Reply:
        model = self._model
        return await http_client.post(
            f"{model.url.rstrip('/')}/chat/completions",
            _request(model, goals),
            headers={"Authorization": f"Bearer {model.key}"} if model.key else {},
            seconds=model.timeout_seconds,
            unwanted=self._stop,
        )

    def _nothing(self, why: str) -> Suggestions:
        text = f"{self._model.url}: {why}"
        with self._lock:
            if text not in self.warnings:
                self._warn(text)
            self.warnings.append(text)
        return NOTHING


def _request(model: Model, goals: Sequence[GoalView]) -> dict[str, Any]:
    shown = "\n\n".join(goal_text(goal) for goal in goals)
    return {
        "model": model.model,
        "messages": [
            {"role": "system", "content": _SYSTEM.format(count=model.count)},
            {"role": "user", "content": shown},
        ],
        "temperature": model.temperature,
        "seed": model.seed,
        "max_tokens": model.max_tokens,
    }


def parse(answer: str) -> list[str]:
    """The tactics of an answer: its lines without fences, bullets, ticks and what is forbidden."""
    tactics: list[str] = []
    for line in answer.splitlines():
        tactic = _BULLET.sub("", line).strip().strip("`").removeprefix("by ").strip()
        usable = tactic and not line.strip().startswith("```") and len(tactic) <= _LONGEST_TACTIC
        if usable and tactic not in tactics and not find_escapes(tactic):
            tactics.append(tactic)
    return tactics
