"""The tree of a search: choices, their outcomes, and statistics over subtrees.

A *choice* is a decision to grow one child under a node. Choices are numbered from 1 in the order in
which they were made, and the node of a scored choice has the same number. The root is number 0.
The outcome of a choice is a node with a score, or a failure.

Each event updates the statistics along one path to the root. Larger values are better, whatever
the direction of the score.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum

from treewright.search.node import Node

LARGEST_VALUE = 1e140
"""Larger values count as this value, so that no sum of squares overflows."""


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


@dataclass(slots=True, eq=False, repr=False)
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

    number: int
    parent: Branch | None
    action: str | None
    depth: int = field(init=False)
    status: Status = Status.PENDING
    node: Node | None = None
    value: float = 0.0
    prior: float = 1.0
    exhausted: bool = False

    children: list[Branch] = field(default_factory=list)
    tries: int = 0
    prior_sum: float = 0.0
    child_total: float = 0.0
    child_squares: float = 0.0
    child_failures: int = 0
    child_reserved: int = 0

    visits: int = 0
    failures: int = 0
    reserved: int = 0
    total: float = 0.0
    squares: float = 0.0
    peak: float = -math.inf
    growing: int = 0

    def __post_init__(self) -> None:
        self.depth = 0 if self.parent is None else self.parent.depth + 1

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


class Tree:
    """A search tree. `reserve` adds a choice and `settle` its outcome; nothing is ever removed.

    Args:
        root: The node the search starts from; an unscored node without data by default.
        branching: The most children of a node, failed ones included; None for no limit.
        actions: The ways to grow a child, if the search has several.
        sums_subtrees: Whether to keep statistics of whole subtrees. They cost one step per level of
            the tree and event; without them every event costs the same.
    """

    def __init__(
        self,
        root: Node | None = None,
        *,
        branching: int | None = None,
        actions: tuple[str, ...] = (),
        sums_subtrees: bool = True,
    ) -> None:
        self.branching = branching
        self.sums_subtrees = sums_subtrees
        self.actions = actions
        self.branches: list[Branch] = []
        self.levels: list[list[Branch]] = []
        """Every choice by depth, in the order of choosing."""
        self.pending = 0
        self.origin = 0.0
        """The first scored value; sums are kept relative to it."""
        self.lowest = math.inf
        self.highest = -math.inf
        self.best: Branch | None = None
        self._growing: list[Branch] = []
        self._position: dict[int, int] = {}
        """The index in `_growing`, by number."""
        self._heap: list[tuple[float, int]] = []
        """Negative value and number of each growing node, and of some that grow no more."""
        self.suspended: tuple[int, ...] = ()
        """Nodes that `without` has suspended."""
        self._suspended_entries: list[tuple[float, int]] = []
        self.root = self._new(None, None)
        node = root or Node(0, None)
        self.root.node = node
        self.root.status = Status.OPEN
        if node.score is not None:
            self.root.reserved = 1  # `_count` takes a reservation away
            self._count(self.root, _bounded(node.value), 0)
        self._start_growing(self.root)
        self._add_growing(self.root, 1)

    def __len__(self) -> int:
        return len(self.branches)

    # -- events ---------------------------------------------------------------------------

    def reserve(self, parent: int, action: str | None = None) -> Branch:
        """Make a choice: reserve a child under `parent`.

        Raises:
            ValueError: There is no such node, or it takes no further child.
        """
        if not 0 <= parent < len(self.branches):
            raise ValueError(f"there is no node {parent}")
        above = self.branches[parent]
        if not self.can_grow(above):
            raise ValueError(f"node {parent} takes no further child")
        branch = self._new(above, action)
        above.tries += 1
        above.child_reserved += 1
        self.pending += 1
        branch.reserved = 1
        if self.sums_subtrees:
            for each in above.path():
                each.reserved += 1
        if self._is_full(above):
            self._stop_growing(above)
        return branch

    def settle(
        self,
        number: int,
        node: Node | None,
        *,
        expandable: bool = True,
        prior: float = 1.0,
        exhausts_parent: bool = False,
    ) -> Branch:
        """Enter the outcome of a choice.

        Args:
            number: The choice.
            node: Its node, or None if the evaluation failed.
            expandable: Whether the node may take children.
            prior: The weight of the node in PUCT selection.
            exhausts_parent: Whether the parent takes no further child, whatever its branching.

        Raises:
            ValueError: The choice has an outcome already.
        """
        branch = self.branches[number]
        if branch.status is not Status.PENDING:
            raise ValueError(f"choice {number} has an outcome already")
        parent = branch.parent
        assert parent is not None
        self.pending -= 1
        parent.child_reserved -= 1
        if exhausts_parent:
            self.exhaust(parent.number)
        if node is None:
            branch.status = Status.FAILED
            parent.child_failures += 1
            for each in self._counted_along(branch):
                each.reserved -= 1
                each.visits += 1
                each.failures += 1
            return branch
        branch.node = node
        branch.status = Status.OPEN if expandable else Status.CLOSED
        branch.prior = prior
        grows = expandable and not branch.exhausted and not self._is_full(branch)
        self._count(branch, _bounded(node.value), grows)
        distance = branch.value - self.origin
        parent.children.append(branch)
        parent.prior_sum += prior
        parent.child_total += distance
        parent.child_squares += distance * distance
        if grows:
            self._start_growing(branch)
        return branch

    def exhaust(self, number: int) -> None:
        """Mark a node as taking no further child, whatever its branching."""
        branch = self.branches[number]
        if not branch.exhausted:
            if self.can_grow(branch):
                self._stop_growing(branch)
            branch.exhausted = True

    @contextmanager
    def without(self, numbers: Sequence[int]) -> Iterator[None]:
        """Suspend these nodes: inside the context they take no child.

        The tree afterwards is the tree before, including the order of `growing`, provided that no
        event happened inside the context.
        """
        once = dict.fromkeys(numbers)
        branches = [branch for n in once if self.can_grow(branch := self.branches[n])]
        positions = []
        self.suspended = tuple(numbers)
        for branch in branches:
            positions.append(self._position[branch.number])
            self._stop_growing(branch)
            branch.exhausted = True
        try:
            yield
        finally:
            self.suspended = ()
            for branch, position in zip(reversed(branches), reversed(positions), strict=True):
                branch.exhausted = False
                self._put_back(branch, position)
            while self._suspended_entries:
                heapq.heappush(self._heap, self._suspended_entries.pop())

    # -- state ----------------------------------------------------------------------------

    def can_grow(self, branch: Branch) -> bool:
        """Whether a node can take another child."""
        return branch.status is Status.OPEN and not branch.exhausted and not self._is_full(branch)

    @property
    def growing(self) -> list[Branch]:
        """The nodes that can take another child, in an order that depends on the events only."""
        return self._growing

    def best_growing(self) -> Branch | None:
        """Return the node of `growing` with the highest value, the older of equals.

        A root without a score comes first.
        """
        heap = self._heap
        while heap:
            branch = self.branches[heap[0][1]]
            if branch.number in self._position:
                return branch
            entry = heapq.heappop(heap)
            if branch.number in self.suspended:
                self._suspended_entries.append(entry)
        return None

    # -- bookkeeping ----------------------------------------------------------------------

    def _new(self, parent: Branch | None, action: str | None) -> Branch:
        branch = Branch(len(self.branches), parent, action)
        self.branches.append(branch)
        if branch.depth == len(self.levels):
            self.levels.append([])
        self.levels[branch.depth].append(branch)
        return branch

    def _counted_along(self, branch: Branch) -> Iterable[Branch]:
        """Return the branches whose statistics an event at `branch` changes."""
        return branch.path() if self.sums_subtrees else (branch,)

    def _count(self, branch: Branch, value: float, grows: int) -> None:
        """Enter the value of a pending choice; `grows` is 1 if its node can take children."""
        if self.best is None:
            self.origin = value
        branch.value = value
        distance = value - self.origin
        square = distance * distance
        for each in self._counted_along(branch):
            each.reserved -= 1
            each.visits += 1
            each.total += distance
            each.squares += square
            each.growing += grows
            if value > each.peak:
                each.peak = value
        self.lowest = min(self.lowest, value)
        self.highest = max(self.highest, value)
        if self.best is None or value > self.best.value:
            self.best = branch

    def _is_full(self, branch: Branch) -> bool:
        return self.branching is not None and branch.tries >= self.branching

    def _start_growing(self, branch: Branch) -> None:
        self._position[branch.number] = len(self._growing)
        self._growing.append(branch)
        # A root without a score comes first: no node is known to be better.
        is_scored = branch.node is not None and branch.node.score is not None
        heapq.heappush(self._heap, (-branch.value if is_scored else -math.inf, branch.number))

    def _stop_growing(self, branch: Branch) -> None:
        position = self._position.pop(branch.number)
        last = self._growing.pop()
        if last is not branch:
            self._growing[position] = last
            self._position[last.number] = position
        self._add_growing(branch, -1)

    def _put_back(self, branch: Branch, position: int) -> None:
        """Undo `_stop_growing`, which moved the last element of `growing` to this position."""
        growing = self._growing
        growing.append(branch)
        if position < len(growing) - 1:
            growing[position], growing[-1] = branch, growing[position]
            self._position[growing[-1].number] = len(growing) - 1
        self._position[branch.number] = position
        self._add_growing(branch, 1)

    def _add_growing(self, branch: Branch, change: int) -> None:
        """Change the number of growing nodes along the path of a branch."""
        for each in self._counted_along(branch):
            each.growing += change


def _bounded(value: float) -> float:
    return max(-LARGEST_VALUE, min(LARGEST_VALUE, value))
