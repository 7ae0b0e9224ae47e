"""Goals, strategies and results: the plain immutable data of the orchestrator."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from treewright.kernel.errors import require_several

PROFILE_VARIABLE = "ORCH_PROFILE"
HEAVY_DIFFICULTY = 0.6
DEFAULT_IMPORTS = ("Init",)
PROJECT_CLASS = "project"
"""The class of goals that are declarations of a project's files."""


class StrategyType(StrEnum):
    """Names of the built-in strategies; the names of plug-ins are plain texts.

    `CACHE` replays the tactics that closed an equal goal before; the bandit does not rank it.
    """

    MICRO = "micro"
    SEARCH = "search"
    COPILOT = "copilot"
    REPROVER = "reprover"
    SKETCH = "sketch"
    DOJO = "dojo"
    CACHE = "cache"


class Place(msgspec.Struct, frozen=True):
    """A declaration of a file; its `sorry`s are the goal.

    `holes` are the byte ranges of the `sorry`s. `tactic_holes` are those among tactics; the
    others are terms.
    """

    file: str
    source: str
    declaration: str
    holes: tuple[tuple[int, int], ...]
    tactic_holes: frozenset[tuple[int, int]] = frozenset()


class Goal(msgspec.Struct, frozen=True):
    """A proposition to prove.

    Args:
        id: The name of the goal in results and in the ledger.
        text: A Lean term of type `Prop`.
        context: Hypotheses in order, each `name : type` or a binder in brackets.
        estimated_difficulty: From 0 to 1; from 0.6 on the goal is heavy.
        imports: The modules that the goal needs.
        goal_class: The class of goals for which the bandit learns.
        preamble: Commands in front of the goal.
        place: The declaration of a file to prove. `text` and `context` then only display it.
    """

    id: str
    text: str
    context: tuple[str, ...] = ()
    estimated_difficulty: float = 0.5
    imports: tuple[str, ...] = DEFAULT_IMPORTS
    goal_class: str = ""
    preamble: str = ""
    place: Place | None = None

    def __post_init__(self) -> None:
        require_several(context=self.context, imports=self.imports)

    @property
    def heavy(self) -> bool:
        """Whether the goal waits in the lane for heavy goals."""
        return self.estimated_difficulty >= HEAVY_DIFFICULTY

    @property
    def shown(self) -> str:
        """The goal as one text, in the form in which Lean displays goals."""
        return "\n".join([*self.context, f"⊢ {self.text}"]) if self.context else self.text


class Result(msgspec.Struct, frozen=True):
    """The result of one attempt.

    A worker's `success` is a claim; the scheduler turns it into a failure unless the replay check
    accepts it. `tactics` are the steps of one script, or one script for each hole of a place.
    Workers may leave `strategy` out; the scheduler fills it in.
    """

    success: bool
    strategy: str | None = None
    tactics: tuple[str, ...] = ()
    time_seconds: float = 0.0
    subgoals: tuple[str, ...] = ()
    error: str | None = None
    metadata: dict[str, Any] = {}

    def __post_init__(self) -> None:
        require_several(tactics=self.tactics, subgoals=self.subgoals)
