"""What is known of a choice and everything below it: the policies' view of a node.

The statistics of a node's children are kept once more at the node, side by side in two rows of
numbers: a policy that looks at all children of every node on its way down would otherwise fetch
each of them, and each of their numbers, from another place in memory.
"""

from __future__ import annotations

import math
from array import array
from enum import IntEnum
from math import sqrt
from typing import NamedTuple

from treewright.search.node import Node

RANKS = 2
"""Numbers of a child in `Branch.ranks`: its peak, and the square root of its tries."""
SUMS = 5
"""Numbers of a child in `Branch.sums`: growing, scored, failures, total, squares."""
_EMPTY: array[float] = array("d")
"""Of nodes without children, which are most; a node gets rows of its own with its first."""


class Status(IntEnum):
    PENDING = 0
    """Chosen; no outcome yet. Counts as a reservation along its path."""
    OPEN = 1
    """Scored, and may be grown further."""
    CLOSED = 2
    """Scored, and will not be grown further: it did not pass the domain's gate."""
    FAILED = 3
    """There is no score and no node."""


class Leaders(NamedTuple):
    """A few children of a node, and what none of the others exceeds.

    The score of a child is `(peak - low) / span + scale / root` of its numbers in `Branch.ranks`;
    that of every child but the leaders is at most `bound`. It stays so for every smaller scale:
    tries only grow, and rounding keeps the order of results. Where a peak rises or a child comes
    back the node forgets its leaders.
    """

    rows: tuple[int, ...]
    """Where the leaders' numbers begin in `Branch.ranks`, in the order of children."""
    bound: float
    scale: float
    low: float
    span: float


class Branch:
    """What is known of a choice and everything below it.

    `visits` counts the outcomes of the subtree, `failures` those without a score, `reserved` its
    pending choices. `total` and `squares` sum its values less the tree's `origin`, so that small
    differences between large values are not lost; `peak` is the highest. `growing` counts the
    nodes in it that can take another child; an `exhausted` one never can. The `child_*` fields
    say the same of the direct children alone.

    `ranks` and `sums` have what `RANKS` and `SUMS` say, child by child in the order of
    `children`, if the tree sums subtrees. In one that does not sum values there are no `sums`, and
    `total` and `squares` are those of the node alone. A child in which nothing can grow has the
    peak -inf in `ranks`; `open_children` counts the others. `place` is a child's own place in this
    order. `leaders` is kept for a policy that wants to look at few of many children.
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
        "leaders",
        "node",
        "number",
        "open_children",
        "parent",
        "peak",
        "place",
        "prior",
        "prior_sum",
        "ranks",
        "reserved",
        "squares",
        "status",
        "sums",
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
        self.place = -1
        self.children: list[Branch] = []
        self.open_children = 0
        self.ranks = _EMPTY
        self.leaders: Leaders | None = None
        self.sums = _EMPTY
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
        return self.visits - self.failures

    def __repr__(self) -> str:
        return f"Branch({self.number}, {self.status.name}, visits={self.visits})"

    # -- events, along the path to the root ------------------------------------------------

    def reserve(self) -> None:
        """One more pending choice in this subtree and in all around it."""
        each = self
        while True:
            each.reserved += 1
            above = each.parent
            if above is None:
                return
            if each.place >= 0:
                above.ranks[each.place * RANKS + 1] = sqrt(each.visits + each.reserved)
            each = above

    def score(self, distance: float, value: float, grows: int) -> None:
        """A pending choice has its value, which is so far from the origin; `grows` is 1 if it can
        take children. In one walk: this is what every outcome costs."""
        square = distance * distance
        each = self
        while True:
            each.reserved -= 1
            each.visits += 1
            total = each.total = each.total + distance
            squares = each.squares = each.squares + square
            before = each.growing
            growing = each.growing = before + grows
            rises = value > each.peak
            if rises:
                each.peak = value
            above = each.parent
            if above is None:
                return
            place = each.place
            if place >= 0:
                if growing and (rises or not before):
                    above.ranks[place * RANKS] = each.peak
                    above.leaders = None
                    above.open_children += not before
                sums = above.sums
                place *= SUMS
                sums[place] = growing
                sums[place + 1] += 1.0
                sums[place + 3] = total
                sums[place + 4] = squares
            each = above

    def score_peak(self, value: float, grows: int) -> None:
        """The same in a tree that does not sum values: each of these walks is most of what an
        outcome costs in a large tree, and totals are numbers that nobody has at hand by then."""
        each = self
        while True:
            each.reserved -= 1
            each.visits += 1
            before = each.growing
            each.growing = before + grows
            rises = value > each.peak
            if rises:
                each.peak = value
            above = each.parent
            if above is None:
                return
            if each.place >= 0 and (rises or not before) and each.growing:
                above.ranks[each.place * RANKS] = each.peak
                above.leaders = None
                above.open_children += not before
            each = above

    def fail(self) -> None:
        """A pending choice will never have a value."""
        each = self
        while True:
            each.reserved -= 1
            each.visits += 1
            each.failures += 1
            above = each.parent
            if above is None:
                return
            if each.place >= 0 and above.sums:
                above.sums[each.place * SUMS + 2] += 1.0
            each = above

    def grow(self, change: int) -> None:
        """One node more, or one fewer, can take another child."""
        each = self
        while True:
            before = each.growing
            after = each.growing = before + change
            above, place = each.parent, each.place
            if above is None:
                return
            if place >= 0:
                if above.sums:
                    above.sums[place * SUMS] = after
                if not before:
                    above.open_children += 1
                    above.ranks[place * RANKS] = each.peak
                    above.leaders = None
                elif not after:
                    above.open_children -= 1
                    above.ranks[place * RANKS] = -math.inf
            each = above

    def add_child(self, child: Branch, sums_values: bool) -> None:
        """A child that was scored just now takes its place in the rows."""
        if not self.children:
            self.ranks = array("d")
            self.sums = array("d") if sums_values else _EMPTY
        self.leaders = None
        child.place = len(self.children)
        self.children.append(child)
        grows = child.growing > 0
        self.open_children += grows
        peak = child.peak if grows else -math.inf
        self.ranks.extend((peak, sqrt(child.visits + child.reserved)))
        if sums_values:
            counts = (child.growing, child.scored, child.failures, child.total, child.squares)
            self.sums.extend(counts)
