"""The statistics of one choice and of the subtree below it, as policies read them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import IntEnum

from treewright.search.node import Node


class Status(IntEnum):
    """The state of a choice."""

    PENDING = 0
    """Chosen, without an outcome yet. Counts as a reservation along its path to the root."""
    OPEN = 1
    """Scored, and may take children."""
    CLOSED = 2
    """Scored, and takes no children: the domain's gate rejected it."""
    FAILED = 3
    """The evaluation failed: there is no score and no node."""


class Branch:
    """A choice with the statistics of its subtree.

    Statistics of the subtree, the branch itself included:

    - `visits`: outcomes; `failures`: outcomes without a score; `reserved`: pending choices.
    - `total`, `squares`: sums over the scored values, each reduced by the tree's `origin`, so that
      small differences between large values are not lost.
    - `peak`: the highest value.
    - `growing`: how many nodes can take another child.

    The `child_*` fields count the direct children only. `tries` counts every child that was ever
    chosen, failed ones included; `children` lists the scored ones. An `exhausted` branch takes no
    further child.
    """

    __slots__ = (
        "action",
        "child_failures",
        "child_reserved",
        "child_squares",
        "child_total",
        "children",
        "depth",
        "exhausted",
        "failures",
        "growing",
        "node",
        "number",
        "parent",
        "peak",
        "prior",
        "prior_sum",
        "reserved",
        "squares",
        "status",
        "total",
        "tries",
        "value",
        "visits",
    )

    def __init__(self, number: int, parent: Branch | None, action: str | None) -> None:
        self.number = number
        self.parent = parent
        self.action = action
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.status = Status.PENDING
        self.node: Node | None = None
        self.value = 0.0
        self.prior = 1.0
        self.children: list[Branch] = []
        self.tries = 0
        self.prior_sum = 0.0
        self.child_total = 0.0
        self.child_squares = 0.0
        self.child_failures = 0
        self.child_reserved = 0
        self.visits = 0
        self.failures = 0
        self.total = 0.0
        self.squares = 0.0
        self.peak = -math.inf
        self.reserved = 0
        self.growing = 0
        self.exhausted = False

    @property
    def scored(self) -> int:
        """Scored outcomes of the subtree."""
        return self.visits - self.failures

    def path(self) -> Iterator[Branch]:
        """Yield this branch and its ancestors up to the root."""
        each: Branch | None = self
        while each is not None:
            yield each
            each = each.parent

    def __repr__(self) -> str:
        return f"Branch({self.number}, {self.status.name}, visits={self.visits})"
