"""Tactics from a language model behind an OpenAI-compatible endpoint.

If the model does not answer, the run goes on without its suggestions, and the user is warned.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence

from treewright.lean.verify.restrictions import find_escapes
from treewright.llm.chat import Message, Request
from treewright.llm.client import ChatClient
from treewright.llm.endpoint import ChatError, Endpoint, describe
from treewright.llm.usage import Usage
from treewright.proving.records import Candidate, GoalView
from treewright.proving.tactics.source import (
    NOTHING,
    AskingStopped,
    Suggestions,
    goal_text,
    rank_priors,
)

_SYSTEM = (
    "You write Lean 4 tactics. For the goal you are given, answer with up to {count} single "
    "tactics that may come next, the best first, one a line, without numbers or explanations."
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_LONGEST_TACTIC = 300
_COUNT = 8
Spend = Callable[[Usage], None]
"""Receives the usage of each answer."""
_TRIES = 3
"""Few, because a search has other tactics to try meanwhile."""


class LlmTactics:
    """Asks a model once for each goal. `warnings` are the failures so far."""

    name = "llm"
    overlaps = True

    def __init__(
        self,
        endpoint: Endpoint,
        seed: int = 0,
        warn: Callable[[str], None] = lambda text: None,
        spend: Spend = lambda usage: None,
    ) -> None:
        self._client = ChatClient(endpoint)
        self._seed = seed
        self._lock = threading.Lock()
        self.warnings: list[str] = []
        self._warn = warn
        self._spend = spend
        self._stop: Callable[[], bool] = lambda: False

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        if round_number > 0:
            return NOTHING
        request = Request(_messages(goals), seed=self._seed, tries=_TRIES)
        try:
            answer = self._client.ask(request, unwanted=self._stop)
        except ChatError as error:
            if error.code == "cancelled":
                raise AskingStopped from None
            return self._nothing(error.message)
        with self._lock:
            self._spend(answer.usage)
        tactics = parse(answer.text)[:_COUNT]
        if not tactics:
            return self._nothing(f"the answer of {describe(self._client.endpoint)} has no tactic")
        priors = rank_priors(len(tactics))
        return Suggestions(
            tuple(Candidate(t, p, self.name) for t, p in zip(tactics, priors, strict=True))
        )

    def stop_when(self, stop: Callable[[], bool]) -> None:
        """Set the condition on which a waiting question is given up, with AskingStopped."""
        self._stop = stop

    def _nothing(self, why: str) -> Suggestions:
        with self._lock:
            if why not in self.warnings:
                self._warn(why)
            self.warnings.append(why)
        return NOTHING


def _messages(goals: Sequence[GoalView]) -> list[Message]:
    shown = "\n\n".join(goal_text(goal) for goal in goals)
    return [Message("system", _SYSTEM.format(count=_COUNT)), Message("user", shown)]


def parse(answer: str) -> list[str]:
    """Return the tactics of an answer: its lines without fences, bullets and ticks, if allowed."""
    tactics: list[str] = []
    for line in answer.splitlines():
        tactic = _BULLET.sub("", line).strip().strip("`").removeprefix("by ").strip()
        usable = tactic and not line.strip().startswith("```") and len(tactic) <= _LONGEST_TACTIC
        if usable and tactic not in tactics and not find_escapes(tactic):
            tactics.append(tactic)
    return tactics
