"""The lines of a search's journal: the file format of `open_search`.

The journal is all there is; nothing else is written but the lease. A choice is a function of what
it knew, so its line need not be on disk before it is acted on; an outcome is, when `tell` returns.
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
    """What the choices depend on. Fixed for the life of a search."""

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
    owner: Owner


class Created(_Line, tag="created"):
    settings: Settings
    format_version: int = FORMAT_VERSION
    treewright: str = ""


class BudgetSet(_Line, tag="budget"):
    """`evaluations` is the most choices the search may make; None is no limit."""

    evaluations: int | None = None


class Chosen(_Line, tag="chosen"):
    """`seen`: how many outcomes the choice knew."""

    number: int
    parent: int
    seen: int
    action: str | None = None


class Retried(_Line, tag="retried"):
    """A choice without an outcome was handed out again."""

    number: int
    attempt: int


class Told(_Line, tag="told"):
    number: int
    score: float | dict[str, float]
    data: Any = None
    expandable: bool = True
    prior: float = 1.0
    worker: str | None = None


class Failed(_Line, tag="failed"):
    number: int
    reason: str
    exhausts_parent: bool = False
    worker: str | None = None


class Returned(_Line, tag="returned"):
    """A fault: the choice goes back to the queue, and nothing is learned from it."""

    number: int
    reason: str


Line = LeaseTaken | Created | BudgetSet | Chosen | Retried | Told | Failed | Returned


def name_of(line: Line) -> str:
    """For messages: `chosen 5`."""
    number = getattr(line, "number", None)
    kind = type(line).__name__.lower()
    return kind if number is None else f"{kind} {number}"
