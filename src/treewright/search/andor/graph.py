"""The AND/OR graph of a search. It has no part in choosing the next goal.

A node is a goal; it is solved when one of its edges is solved (OR). An edge is an action with the
goals that it leaves; it is solved when all of them are solved (AND). Goals with the same key are
one node, so this is a directed acyclic graph: an edge that would close a circle is refused.

Every change updates status, depth, counts and sizes of solutions along the changed part of the
graph. `invariants.check` recomputes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import prod
from typing import NamedTuple


class Status(IntEnum):
    """The state of a goal or an edge. A dead one can no longer be solved."""

    OPEN = 0
    SOLVED = 1
    DEAD = 2


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """A goal with its edges and statistics.

    Attributes:
        estimate: The estimated probability, before any visit, that the goal can be solved.
        rank: A number that grows along every edge.
        live: The edges that are open.
        exhausted: Whether no further action is tried at the goal.
        visits: How often the search passed or ended here; `tries` counts those that ended here.
        total: The sum of the values of all visits.
        virtual: Reservations of agents that work below the goal (virtual loss).
        outlook: A value of the policies that need one.
    """

    id: int
    key: str
    depth: int
    rank: int
    estimate: float
    status: Status = Status.OPEN
    exhausted: bool = False
    edges: list[Edge] = field(default_factory=list)
    live: list[Edge] = field(default_factory=list)
    parents: list[Edge] = field(default_factory=list)
    solution: Edge | None = None
    solution_size: int = 0
    visits: int = 0
    tries: int = 0
    total: float = 0.0
    virtual: int = 0
    outlook: float = field(init=False)

    def __post_init__(self) -> None:
        self.outlook = self.estimate

    @property
    def value(self) -> float:
        """The probability that the goal can be solved; before any visit the estimate."""
        if self.status:
            return 1.0 if self.status is Status.SOLVED else 0.0
        return self.total / self.visits if self.visits else self.estimate


@dataclass(slots=True, eq=False, repr=False)
class Edge:
    """An action at a node, with the goals that it leaves. All of them must be solved.

    Attributes:
        promise: The product of the estimates of the children, for an edge without visits.
        unsolved: How many children are not solved.
        is_excluded: Whether the edge was taken out by `Graph.exclude`.
        layout: Set by the caller: for each child, the positions of its goal among those that the
            action leaves.
    """

    id: int
    parent: Node
    action: str
    prior: float | None
    children: tuple[Node, ...]
    layout: tuple[tuple[int, ...], ...] = ()
    promise: float = field(init=False)
    status: Status = Status.OPEN
    unsolved: int = 0
    is_excluded: bool = False
    visits: int = 0
    total: float = 0.0
    virtual: int = 0

    def __post_init__(self) -> None:
        self.promise = prod((child.estimate for child in self.children), start=1.0)


@dataclass(slots=True)
class Changes:
    """The nodes that one change to the graph solved or made dead, in the order of propagation."""

    solved: list[Node] = field(default_factory=list)
    dead: list[Node] = field(default_factory=list)


class Child(NamedTuple):
    """A goal that an action leaves, with the estimated probability that it can be solved."""

    key: str
    estimate: float


class Graph:
    """Grows by `add_edge` and `exhaust`. `exclude` takes an edge out; nothing is removed."""

    def __init__(self, key: str, estimate: float = 0.5) -> None:
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.by_key: dict[str, Node] = {}
        self.solved = 0
        self.dead = 0
        self.root = self._new_node(key, 0, 0, estimate)

    # -- growing --------------------------------------------------------------------------

    def add_edge(
        self,
        parent: Node,
        action: str,
        prior: float | None,
        children: Sequence[Child],
        changes: Changes,
    ) -> Edge | None:
        """Add an action to an open node.

        Args:
            parent: The node.
            action: The action.
            prior: Its prior; None if the search has no priors.
            children: The goals that it leaves. A goal that occurs twice becomes two children.
            changes: Receives the nodes that the edge solves or makes dead.

        Returns:
            The edge; None if it would close a circle.
        """
        by_key = self.by_key
        for child in children:
            node = by_key.get(child.key)
            if node is not None and self._is_ancestor(node, parent):
                return None
        below, deeper = parent.rank + 1, parent.depth + 1
        nodes: list[Node] = []
        unsolved = 0
        dead = False
        for child in children:
            node = by_key.get(child.key)
            if node is None:
                node = self._new_node(child.key, deeper, below, child.estimate)
                unsolved += 1
            else:
                if node.rank < below:
                    self._raise_ranks(node, below)
                if node.depth > deeper:
                    self._lower_depths(node, deeper)
                if node.status is not Status.SOLVED:
                    unsolved += 1
                    dead = dead or node.status is Status.DEAD
            nodes.append(node)
        edge = Edge(len(self.edges), parent, action, prior, tuple(nodes))
        edge.unsolved = unsolved
        self.edges.append(edge)
        parent.edges.append(edge)
        parent.live.append(edge)
        for node in nodes:
            node.parents.append(edge)
        if dead:
            self._kill_edge(edge, changes)
        elif not unsolved:
            self._solve_edge(edge, changes)
        return edge

    def exhaust(self, node: Node, changes: Changes) -> None:
        """Mark a node at which no further action is tried. Without a live edge it is dead."""
        node.exhausted = True
        if node.status is Status.OPEN and not node.live:
            self._kill_node(node, changes)

    def exclude(self, excluded: Edge) -> None:
        """Make an edge dead, and recompute the status of every node and edge.

        Nodes that only this edge solved are open again.
        """
        excluded.is_excluded = True
        for node in sorted(self.nodes, key=lambda node: -node.rank):
            for edge in node.edges:
                edge.unsolved = sum(child.status is not Status.SOLVED for child in edge.children)
                is_dead = edge.is_excluded or any(
                    child.status is Status.DEAD for child in edge.children
                )
                is_open = Status.OPEN if edge.unsolved else Status.SOLVED
                edge.status = Status.DEAD if is_dead else is_open
            solved = [edge for edge in node.edges if edge.status is Status.SOLVED]
            if node.solution not in solved:
                node.solution = solved[0] if solved else None
            if node.solution is not None:
                children = node.solution.children
                node.status, node.live = Status.SOLVED, []
                node.solution_size = 1 + sum(child.solution_size for child in children)
                continue
            node.live = [edge for edge in node.edges if edge.status is Status.OPEN]
            node.status = Status.DEAD if node.exhausted and not node.live else Status.OPEN
            node.solution_size = 0
        self.solved = sum(node.status is Status.SOLVED for node in self.nodes)
        self.dead = sum(node.status is Status.DEAD for node in self.nodes)

    def _new_node(self, key: str, depth: int, rank: int, estimate: float) -> Node:
        node = Node(len(self.nodes), key, depth, rank, estimate)
        self.nodes.append(node)
        self.by_key[key] = node
        return node

    def check(self) -> None:
        """Raise an AssertionError if a value differs from its recomputation."""
        from treewright.search.andor.invariants import check

        check(self)

    # -- order ----------------------------------------------------------------------------

    def _is_ancestor(self, candidate: Node, node: Node) -> bool:
        """Return whether a path leads from `candidate` to `node`. Ranks limit the search."""
        if candidate is node:
            return True
        if candidate.rank >= node.rank:
            return False
        floor = candidate.rank
        seen = {node.id}
        waiting = [node]
        while waiting:
            for edge in waiting.pop().parents:
                parent = edge.parent
                if parent is candidate:
                    return True
                if parent.rank > floor and parent.id not in seen:
                    seen.add(parent.id)
                    waiting.append(parent)
        return False

    @staticmethod
    def _raise_ranks(node: Node, rank: int) -> None:
        waiting = [(node, rank)]
        while waiting:
            current, lowest = waiting.pop()
            if current.rank < lowest:
                current.rank = lowest
                waiting += [(c, lowest + 1) for e in current.edges for c in e.children]

    @staticmethod
    def _lower_depths(node: Node, depth: int) -> None:
        waiting = [(node, depth)]
        while waiting:
            current, highest = waiting.pop()
            if current.depth > highest:
                current.depth = highest
                waiting += [(c, highest + 1) for e in current.edges for c in e.children]

    # -- status ---------------------------------------------------------------------------

    def _solve_edge(self, first: Edge, changes: Changes) -> None:
        waiting = [first]
        while waiting:
            edge = waiting.pop()
            edge.status = Status.SOLVED
            node = edge.parent
            if node.status is not Status.OPEN:
                continue
            node.status = Status.SOLVED
            node.solution = edge
            node.solution_size = 1 + sum(child.solution_size for child in edge.children)
            node.live.clear()
            self.solved += 1
            changes.solved.append(node)
            for above in node.parents:
                above.unsolved -= 1
                if not above.unsolved and above.status is Status.OPEN:
                    waiting.append(above)

    def _kill_edge(self, edge: Edge, changes: Changes) -> None:
        edge.status = Status.DEAD
        node = edge.parent
        if edge in node.live:
            node.live.remove(edge)
        if node.status is Status.OPEN and node.exhausted and not node.live:
            self._kill_node(node, changes)

    def _kill_node(self, first: Node, changes: Changes) -> None:
        waiting = [first]
        while waiting:
            node = waiting.pop()
            if node.status is not Status.OPEN:
                continue
            node.status = Status.DEAD
            self.dead += 1
            changes.dead.append(node)
            for above in node.parents:
                if above.status is not Status.OPEN:
                    continue
                above.status = Status.DEAD
                parent = above.parent
                if parent.status is Status.OPEN:
                    parent.live.remove(above)
                    if parent.exhausted and not parent.live:
                        waiting.append(parent)
