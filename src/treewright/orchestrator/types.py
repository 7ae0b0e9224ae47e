"""The vocabulary of the orchestrator: goals, strategies, results. Plain immutable data."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from treewright.kernel.errors import require_several

HEAVY_DIFFICULTY = 0.6
DEFAULT_IMPORTS = ("Init",)


class StrategyType(StrEnum):
    """Names of strategies in the box; those of plug-ins are plain texts (`strategies.py`).

    `CACHE` replays what closed an equal goal before; it is no arm.
    """

    MICRO = "micro"
    SEARCH = "search"
    COPILOT = "copilot"
    REPROVER = "reprover"
    SKETCH = "sketch"
    DOJO = "dojo"
    CACHE = "cache"


class Place(msgspec.Struct, frozen=True):
    """A declaration of a file whose `sorry`s are the goal; `holes` are their byte ranges.

    `tactic_holes` are those that stand among tactics; the others are terms.
    """

    file: str
    source: str
    declaration: str
    holes: tuple[tuple[int, int], ...]
    tactic_holes: frozenset[tuple[int, int]] = frozenset()


class Goal(msgspec.Struct, frozen=True):
    """Something to prove.

    `text` is a Lean term of type `Prop`, read with `context` in scope: hypotheses in order, each
    as `name : type` or as a binder in brackets. `preamble` are commands in front of it. With a
    `place`, that is what gets proved, and `text` and `context` only show it.
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
        return self.estimated_difficulty >= HEAVY_DIFFICULTY

    @property
    def shown(self) -> str:
        """The goal as Lean shows goals, in one text."""
        return "\n".join([*self.context, f"⊢ {self.text}"]) if self.context else self.text


class Result(msgspec.Struct, frozen=True):
    """What came of one attempt.

    A worker's `success` is a claim; the scheduler lets it stand only after the replay check.
    `tactics` are the steps of one script, or one script for each hole of a place. Whose result it
    is a worker may leave out: the scheduler knows.
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
