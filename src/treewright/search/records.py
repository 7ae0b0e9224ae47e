"""The lines of a search's journal: the file format of `open_search`.

A search has no files besides the journal and the lease. A choice can be computed again from the
outcomes before it, so its line is not synced; an outcome is on disk when `tell` returns.
"""

from __future__ import annotations

from typing import Any

import msgspec

from treewright.kernel.storage import journal
from treewright.kernel.storage.lease import Owner
from treewright.search.scores import Direction, Gate
from treewright.search.sequencer import Order

FORMAT_VERSION = 1


class Settings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """The settings that the choices depend on. Fixed when the search begins."""

    policy: str
    options: dict[str, Any] = {}
    seed: int = 0
    order: Order = "fixed"
    lookahead: int = 1
    branching: int | None = None
    actions: tuple[str, ...] = ()
    direction: Direction = "maximize"
    gate: Gate = "none"
    root_score: float | dict[str, float] | None = None
    root_data: Any = None


class _Line(msgspec.Struct, tag_field="type", kw_only=True, omit_defaults=True):
    epoch: int = 0
    at: str = ""


class LeaseTaken(_Line, tag=journal.LEASE):
    """A process opened the search."""

    owner: Owner


class Created(_Line, tag="created"):
    """The search began."""

    settings: Settings
    format_version: int = FORMAT_VERSION
    treewright: str = ""


class BudgetSet(_Line, tag="budget"):
    """`evaluations` is the most choices the search may make; None is no limit."""

    evaluations: int | None = None


class Chosen(_Line, tag="chosen"):
    """The policy chose a task. `seen` is the number of outcomes that it knew."""

    number: int
    parent: int
    seen: int
    action: str | None = None


class Retried(_Line, tag="retried"):
    """A task without an outcome was handed out again."""

    number: int
    attempt: int


class Told(_Line, tag="told"):
    """A task has its score."""

    number: int
    score: float | dict[str, float]
    data: Any = None
    expandable: bool = True
    prior: float = 1.0
    worker: str | None = None


class Failed(_Line, tag="failed"):
    """A task failed."""

    number: int
    reason: str
    exhausts_parent: bool = False
    worker: str | None = None


class Returned(_Line, tag="returned"):
    """A task was given back after a fault. The policy learns nothing from it."""

    number: int
    reason: str


Line = LeaseTaken | Created | BudgetSet | Chosen | Retried | Told | Failed | Returned


def name_of(line: Line) -> str:
    """Return the name of a line for messages, such as `chosen 5`."""
    number = getattr(line, "number", None)
    kind = type(line).__name__.lower()
    return kind if number is None else f"{kind} {number}"
