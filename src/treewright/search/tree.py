"""The tree of a search: what was chosen, what came of it, and nothing about how to choose.

A *choice* is a decision to grow one child under a node; it has a number, counted from 1 in the
order in which choices were made, and its node, once scored, has the same number. The root is
number 0. An outcome is a score (the node is there) or a failure (it never will be).

All statistics are kept up to date per event, along the path to the root only. Values are
"larger is better" whatever the direction of the score. `invariants.check` recomputes everything.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from treewright.search.branch import Branch, Status
from treewright.search.node import Node

LARGEST_VALUE = 1e140
"""Values beyond this are counted as this, so that no sum of squares leaves the floats."""


class Tree:
    """Grows by `reserve` and `settle`; never shrinks, never forgets.

    `branching` is the most children a node may have, failed ones included; None is no limit.
    Statistics of subtrees cost as much per event as the tree is deep; a policy that does not
    ask for them (`sums_subtrees`) does without, and each event costs the same. One that asks for
    visits and peaks alone does without the sums of values (`sums_values`).
    """

    def __init__(
        self,
        root: Node | None = None,
        *,
        branching: int | None = None,
        actions: tuple[str, ...] = (),
        sums_subtrees: bool = True,
        sums_values: bool = True,
    ) -> None:
        self.branching = branching
        self.sums_subtrees = sums_subtrees
        self.sums_values = sums_subtrees and sums_values
        self.actions = actions
        self.branches: list[Branch] = []
        self.levels: list[list[Branch]] = []
        """Every choice by depth, in the order of choosing."""
        self.pending = 0
        self.origin = 0.0
        """The first value counted."""
        self.lowest = math.inf
        self.highest = -math.inf
        self.best: Branch | None = None
        self._growing: list[Branch] = []
        self._place: dict[int, int] = {}
        self._heap: list[tuple[float, int]] = []
        self.held: tuple[int, ...] = ()
        """Nodes that take no child just now: `without`."""
        self._aside: list[tuple[float, int]] = []
        self.root = self._new(None, None)
        node = root or Node(0, None)
        self.root.node = node
        self.root.status = Status.OPEN
        if node.score is not None:
            self.root.reserved = 1
            self._count(self.root, _bounded(node.value), 0)
        self._start_growing(self.root)
        self._grow(self.root, 1)

    def __len__(self) -> int:
        return len(self.branches)

    # -- events ---------------------------------------------------------------------------

    def reserve(self, parent: int, action: str | None = None) -> Branch:
        """A child is to be grown under `parent`, which must be able to take one."""
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
            above.reserve()
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
        """The outcome of a choice: its node, or None for a failure.

        `exhausts_parent`: nothing more can be tried under the parent, whatever its branching.
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
            if self.sums_subtrees:
                branch.fail()
            else:
                branch.reserved, branch.visits, branch.failures = 0, 1, 1
            return branch
        branch.node = node
        branch.status = Status.OPEN if expandable else Status.CLOSED
        branch.prior = prior
        grows = expandable and not branch.exhausted and not self._is_full(branch)
        self._count(branch, _bounded(node.value), grows)
        distance = branch.value - self.origin
        if self.sums_subtrees:
            parent.add_child(branch, self.sums_values)
        else:
            parent.children.append(branch)
        parent.prior_sum += prior
        parent.child_total += distance
        parent.child_squares += distance * distance
        if grows:
            self._start_growing(branch)
        return branch

    def exhaust(self, number: int) -> None:
        """Nothing more can be tried under this node, whatever its branching."""
        branch = self.branches[number]
        if not branch.exhausted:
            if self.can_grow(branch):
                self._stop_growing(branch)
            branch.exhausted = True

    @contextmanager
    def without(self, numbers: Sequence[int]) -> Iterator[None]:
        """As if nothing could be tried under these nodes. When it ends all is as it was before,
        down to the order of what can grow, so long as nothing happened to the tree meanwhile."""
        once = dict.fromkeys(numbers)
        held = [branch for n in once if self.can_grow(branch := self.branches[n])]
        places = []
        self.held = tuple(numbers)
        for branch in held:
            places.append(self._place[branch.number])
            self._stop_growing(branch)
            branch.exhausted = True
        try:
            yield
        finally:
            self.held = ()
            for branch, place in zip(reversed(held), reversed(places), strict=True):
                branch.exhausted = False
                self._put_back(branch, place)
            while self._aside:
                heapq.heappush(self._heap, self._aside.pop())

    # -- questions ------------------------------------------------------------------------

    def can_grow(self, branch: Branch) -> bool:
        branching = self.branching  # not `_is_full`: every policy asks this all the time
        return (
            branch.status is Status.OPEN
            and not branch.exhausted
            and (branching is None or branch.tries < branching)
        )

    @property
    def growing(self) -> list[Branch]:
        """The nodes that can take another child; in an order that depends on the events only."""
        return self._growing

    def best_growing(self) -> Branch | None:
        """Of these the one of highest value, the older of equals; a root without a score first."""
        heap = self._heap
        while heap:
            branch = self.branches[heap[0][1]]
            if branch.number in self._place:
                return branch
            entry = heapq.heappop(heap)
            if branch.number in self.held:
                self._aside.append(entry)
        return None

    def scored(self) -> Iterator[Node]:
        """Every node with a score, in the order of choosing."""
        for branch in self.branches:
            if branch.node is not None and branch.node.score is not None:
                yield branch.node

    def check(self) -> None:
        """Raises AssertionError if anything kept up to date differs from what it should be."""
        from treewright.search.invariants import check

        check(self)

    # -- bookkeeping ----------------------------------------------------------------------

    def _new(self, parent: Branch | None, action: str | None) -> Branch:
        branch = Branch(len(self.branches), parent, action)
        self.branches.append(branch)
        if branch.depth == len(self.levels):
            self.levels.append([])
        self.levels[branch.depth].append(branch)
        return branch

    def _count(self, branch: Branch, value: float, grows: int) -> None:
        if self.best is None:
            self.origin = value
        branch.value = value
        distance = value - self.origin
        if self.sums_values:
            branch.score(distance, value, grows)
        else:
            branch.total, branch.squares = distance, distance * distance
            if self.sums_subtrees:
                branch.score_peak(value, grows)
            else:
                branch.reserved, branch.visits, branch.peak, branch.growing = 0, 1, value, grows
        self.lowest = min(self.lowest, value)
        self.highest = max(self.highest, value)
        if self.best is None or value > self.best.value:
            self.best = branch

    def _is_full(self, branch: Branch) -> bool:
        return self.branching is not None and branch.tries >= self.branching

    def _start_growing(self, branch: Branch) -> None:
        self._place[branch.number] = len(self._growing)
        self._growing.append(branch)
        # A root without a score comes first: nothing is known that would be better.
        is_scored = branch.node is not None and branch.node.score is not None
        heapq.heappush(self._heap, (-branch.value if is_scored else -math.inf, branch.number))

    def _stop_growing(self, branch: Branch) -> None:
        place = self._place.pop(branch.number)
        last = self._growing.pop()
        if last is not branch:
            self._growing[place] = last
            self._place[last.number] = place
        self._grow(branch, -1)

    def _put_back(self, branch: Branch, place: int) -> None:
        """Undoes `_stop_growing`, which put the last one in its place."""
        growing = self._growing
        growing.append(branch)
        if place < len(growing) - 1:
            growing[place], growing[-1] = branch, growing[place]
            self._place[growing[-1].number] = len(growing) - 1
        self._place[branch.number] = place
        self._grow(branch, 1)

    def _grow(self, branch: Branch, change: int) -> None:
        if self.sums_subtrees:
            branch.grow(change)
        else:
            branch.growing += change


def _bounded(value: float) -> float:
    return max(-LARGEST_VALUE, min(LARGEST_VALUE, value))
