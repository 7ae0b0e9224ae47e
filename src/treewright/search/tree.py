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
from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any

import msgspec

LARGEST_VALUE = 1e140
"""Values beyond this are counted as this, so that no sum of squares leaves the floats."""


class Status(IntEnum):
    PENDING = 0
    """Chosen; no outcome yet. Counts as a reservation along its path."""
    OPEN = 1
    """Scored, and may be grown further."""
    CLOSED = 2
    """Scored, and will not be grown further: it did not pass the domain's gate."""
    FAILED = 3
    """There is no score and no node."""


class Node:
    """A scored state of the search. Refers upwards only, so a path can be sent elsewhere.

    `data` is made anew whenever it is looked at: an evaluation that changes what it was given
    changes nothing for the next, as after a crash or on another machine.
    """

    __slots__ = (
        "_data",
        "_json",
        "action",
        "depth",
        "number",
        "parent",
        "score",
        "scores",
        "value",
    )

    def __init__(
        self,
        number: int,
        parent: Node | None,
        *,
        action: str | None = None,
        score: float | None = None,
        scores: Mapping[str, float] | None = None,
        value: float = 0.0,
        data: Any = None,
    ) -> None:
        self.number = number
        self.parent = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.action = action
        self.score = score
        self.scores = scores
        self.value = value
        can_change = isinstance(data, list | dict)
        self._json = msgspec.json.encode(data) if can_change else None
        self._data: Any = None if can_change else data

    @property
    def data(self) -> Any:
        return self._data if self._json is None else msgspec.json.decode(self._json)

    def path(self) -> list[Node]:
        """From the root to this node."""
        upwards: list[Node] = []
        node: Node | None = self
        while node is not None:
            upwards.append(node)
            node = node.parent
        return upwards[::-1]

    def __reduce__(self) -> tuple[Any, ...]:
        """Its path as a list: pickled as they refer, a deep one would be too much recursion."""
        return _restore, ([_state(node) for node in self.path()],)

    def __repr__(self) -> str:
        return f"Node({self.number}, depth={self.depth}, score={self.score})"


def _state(node: Node) -> tuple[int, dict[str, Any]]:
    return node.number, {
        "action": node.action,
        "score": node.score,
        "scores": node.scores,
        "value": node.value,
        "data": node.data,
    }


def _restore(path: list[tuple[int, dict[str, Any]]]) -> Node:
    node: Node | None = None
    for number, fields in path:
        node = Node(number, node, **fields)
    assert node is not None
    return node


class Branch:
    """What is known of a choice and everything below it; the policies' view of a node.

    `visits` counts the outcomes of the subtree, `failures` those without a score, `reserved` its
    pending choices. `total` and `squares` sum its values less the tree's `origin`, so that small
    differences between large values are not lost; `peak` is the highest. `growing` counts the
    nodes in it that can take another child; an `exhausted` one never can. The `child_*` fields
    say the same of the direct children alone.
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
        return self.visits - self.failures

    def __repr__(self) -> str:
        return f"Branch({self.number}, {self.status.name}, visits={self.visits})"


class Tree:
    """Grows by `reserve` and `settle`; never shrinks, never forgets.

    `branching` is the most children a node may have, failed ones included; None is no limit.
    Statistics of subtrees cost as much per event as the tree is deep; a policy that does not
    ask for them (`sums_subtrees`) does without, and each event costs the same.
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
        """The first value counted."""
        self.lowest = math.inf
        self.highest = -math.inf
        self.best: Branch | None = None
        self._growing: list[Branch] = []
        self._place: dict[int, int] = {}
        self._heap: list[tuple[float, int]] = []
        self.root = self._new(None, None)
        node = root or Node(0, None)
        self.root.node = node
        self.root.status = Status.OPEN
        if node.score is not None:
            self._count(self.root, _bounded(node.value))
        self._start_growing(self.root)

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
        for each in self._counted(branch):
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
        counted = self._counted(branch)
        for each in counted:
            each.reserved -= 1
        if exhausts_parent:
            self.exhaust(parent.number)
        if node is None:
            branch.status = Status.FAILED
            parent.child_failures += 1
            for each in counted:
                each.visits += 1
                each.failures += 1
            return branch
        branch.node = node
        branch.status = Status.OPEN if expandable else Status.CLOSED
        branch.prior = prior
        self._count(branch, _bounded(node.value))
        distance = branch.value - self.origin
        parent.children.append(branch)
        parent.prior_sum += prior
        parent.child_total += distance
        parent.child_squares += distance * distance
        if expandable and not self._is_full(branch):
            self._start_growing(branch)
        return branch

    def exhaust(self, number: int) -> None:
        """Nothing more can be tried under this node, whatever its branching."""
        branch = self.branches[number]
        if not branch.exhausted:
            if self.can_grow(branch):
                self._stop_growing(branch)
            branch.exhausted = True

    # -- questions ------------------------------------------------------------------------

    def can_grow(self, branch: Branch) -> bool:
        return branch.status is Status.OPEN and not (branch.exhausted or self._is_full(branch))

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
            heapq.heappop(heap)
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

    def _count(self, branch: Branch, value: float) -> None:
        if self.best is None:
            self.origin = value
        branch.value = value
        distance = value - self.origin
        square = distance * distance
        for each in self._counted(branch):
            each.visits += 1
            each.total += distance
            each.squares += square
            if value > each.peak:
                each.peak = value
        self.lowest = min(self.lowest, value)
        self.highest = max(self.highest, value)
        if self.best is None or value > self.best.value:
            self.best = branch

    def _counted(self, branch: Branch) -> list[Branch]:
        """Those whose statistics a change to `branch` changes: it and all above it."""
        if not self.sums_subtrees:
            return [branch]
        counted: list[Branch] = []
        each: Branch | None = branch
        while each is not None:
            counted.append(each)
            each = each.parent
        return counted

    def _is_full(self, branch: Branch) -> bool:
        return self.branching is not None and branch.tries >= self.branching

    def _start_growing(self, branch: Branch) -> None:
        self._place[branch.number] = len(self._growing)
        self._growing.append(branch)
        # A root without a score comes first: nothing is known that would be better.
        is_scored = branch.node is not None and branch.node.score is not None
        heapq.heappush(self._heap, (-branch.value if is_scored else -math.inf, branch.number))
        for each in self._counted(branch):
            each.growing += 1

    def _stop_growing(self, branch: Branch) -> None:
        place = self._place.pop(branch.number)
        last = self._growing.pop()
        if last is not branch:
            self._growing[place] = last
            self._place[last.number] = place
        for each in self._counted(branch):
            each.growing -= 1


def _bounded(value: float) -> float:
    return max(-LARGEST_VALUE, min(LARGEST_VALUE, value))
