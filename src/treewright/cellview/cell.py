"""One cell: its position, its beliefs, and its choice of the next node to work on.

A cell sees only nodes below its position, at most `radius` steps with a radius view. Its beliefs
date from the last time it saw a node. On its way it notices at once that a node is settled, taken
or blocked.
"""

from __future__ import annotations

from collections.abc import Container
from math import inf
from random import Random

from treewright.cellview.algotypes import rules_of
from treewright.cellview.damage import Damage
from treewright.proving.cell_settings import CellSettings
from treewright.proving.expansion import Expander
from treewright.search.andor.graph import Edge, Node
from treewright.search.andor.policies.mcts import Mcts, select_child
from treewright.search.andor.visits import release, reserve

_MOST_DETOURS = 8

Step = tuple[Node, Edge]
Belief = tuple[int, Edge | None]
"""The tick at which a cell saw a node, and its choice there: the edge to follow, or None to try
another tactic at the node itself."""

_NO_BELIEF: tuple[float, None] = (-inf, None)


class Cell:
    """A local controller. It does one thing at a time, and holds at most one reservation."""

    def __init__(
        self,
        agent: int,
        expander: Expander,
        settings: CellSettings,
        policy: Mcts,
        damage: Damage,
        seed: int,
    ) -> None:
        self.agent = agent
        self.algotype = settings.algotype(agent)
        rng = Random(f"{seed}:walk:{agent}")  # noqa: S311
        self._pick, self._widens = rules_of(self.algotype, rng)
        self._tree = expander.tree
        self._policy = policy
        self._damage = damage
        self._reach = settings.radius if settings.view == "radius" else inf
        self._stride = settings.stride
        self._stay = settings.stay
        self._refresh = settings.refresh
        self._depth_limit = settings.depth_limit if self.algotype == "depth_first" else inf
        self._limited = self._depth_limit < inf
        self._turns = 0
        self._avoided: set[int] = set()
        self.path: list[Step] = []
        self.leaf = self._tree.root
        self.settled_count = 0
        self.obstacle: Node | None = None
        self.reroutes = 0
        self.return_to_root()

    # -- moving ---------------------------------------------------------------------------

    def return_to_root(self) -> None:
        """Return to the root, to choose a new position."""
        self._turns = 0
        self._move_to(self._tree.root, [])

    def avoid(self, node: Node) -> None:
        """Avoid a node until the stay at the next position is over."""
        self._avoided.add(node.id)
        self.reroutes += 1
        self.return_to_root()

    def forget_detours(self) -> None:
        """Forget the avoided nodes and the count of detours."""
        self._avoided.clear()
        self.reroutes = 0

    def _move_to(self, node: Node, trail: list[Step]) -> None:
        """Take a new position with a new view; all beliefs are forgotten.

        The cell moves on when a way leaves its view. On its way from the root it takes a position
        sooner.
        """
        self.position = node
        self.trail = trail
        self._beliefs: dict[Node, Belief] = {}
        steps = len(trail)
        self._sees = steps + self._reach
        if not self._turns and steps < self._stride:
            self._sees = min(self._sees, self._stride)

    def _leave_settled_position(self) -> None:
        if self.position.status or is_settled(self.trail):
            self.return_to_root()

    # -- looking --------------------------------------------------------------------------

    def _update_belief(self, node: Node, now: int) -> Edge | None:
        """Choose at a node by its current numbers."""
        live = node.live
        if not live or (not node.exhausted and self._widens(node, self._policy)):
            edge = None
        elif len(live) == 1:
            edge = live[0]
        else:
            edge = self._pick(node, live, self._policy)
        self._beliefs[node] = (now, edge)
        return edge

    def _current_belief(self, node: Node, now: int) -> Edge | None:
        """Return the edge to follow, or None.

        A belief that is old or shows to be wrong is updated.
        """
        seen, edge = self._beliefs.get(node, _NO_BELIEF)
        if edge is None:
            wrong = node.live and node.exhausted
        else:
            wrong = edge.status
        if wrong or now - seen >= self._refresh:
            return self._update_belief(node, now)
        return edge

    def learn(self, leaf: Node, now: int) -> None:
        """Update the beliefs on the way after the cell's own work there."""
        self._turns += 1
        if self._turns >= self._stay:
            self._avoided.clear()
            self.return_to_root()
            return
        for node in [*(node for node, _ in self.path[len(self.trail) :]), leaf]:
            self._update_belief(node, now)

    # -- choosing -------------------------------------------------------------------------

    def choose(self, now: int, taken: Container[int]) -> Node | None:
        """Return the node to work on next, reserved with the `path` that leads to it.

        Return None if there is none: either the `obstacle` in the way is blocked, or everything
        within reach is taken.
        """
        settled = self._tree.solved + self._tree.dead
        if settled != self.settled_count:
            self.settled_count = settled
            self._leave_settled_position()
        self.obstacle = None
        on_nodes = self._damage.on_nodes
        if on_nodes and self._damage.find_node_block(self.position.id, now):
            self.obstacle = self.position
            return None
        if not (on_nodes or self._avoided or self._limited):
            leaf = self.leaf = self._walk(now)
            if leaf.id not in taken:
                return leaf
            release(self.path, leaf)
        leaf = self._find_way_around(now, taken, self._depth_limit)
        if leaf is None and self.obstacle is None and self._limited:
            leaf = self._find_way_around(now, taken, inf)
        if leaf is not None:
            self.leaf = leaf
            reserve(self.path, leaf)
        return leaf

    def _walk(self, now: int) -> Node:
        """Follow the beliefs straight down to a leaf, and reserve each step at once.

        Later choices on the way do not depend on these reservations.
        """
        path = self.path = self.trail.copy()
        for node, edge in path:
            node.virtual += 1
            edge.virtual += 1
        node = self.position
        while True:
            # At a leaf the belief is formed after the work there.
            is_leaf = not node.live and node not in self._beliefs
            edge = None if is_leaf else self._current_belief(node, now)
            node.virtual += 1
            if edge is None:
                return node
            edge.virtual += 1
            path.append((node, edge))
            node = select_child(edge)
            if len(path) >= self._sees:
                self._move_to(node, path.copy())

    def _find_way_around(self, now: int, taken: Container[int], deepest: float) -> Node | None:
        """Find a leaf around taken, avoided and too deep nodes, with a few steps back at most."""
        path = self.path = self.trail.copy()
        node = self.position
        avoided = self._avoided.copy()
        turned_back = bool(avoided)
        detours = 0
        while detours <= _MOST_DETOURS:
            edge = self._current_belief(node, now)
            if edge is None and node.id not in taken:
                return node
            too_deep = len(path) - len(self.trail) >= deepest
            turned_back = turned_back or too_deep
            step = None if too_deep else self._open_step(node, edge, avoided)
            if step is not None:
                if self._damage.on_nodes and self._damage.find_node_block(step[1].id, now):
                    self.obstacle = step[1]
                    return None
                path.append((node, step[0]))
                node = step[1]
                if len(path) >= self._sees:
                    self._move_to(node, path.copy())
                continue
            # A taken node is worth waiting for; around other nodes another tactic may lead.
            if turned_back and node.id not in taken and not node.exhausted:
                return node
            if len(path) == len(self.trail):
                return None
            avoided.add(node.id)
            node, _ = path.pop()
            detours += 1
        return None

    def _open_step(
        self, node: Node, edge: Edge | None, avoided: set[int]
    ) -> tuple[Edge, Node] | None:
        """Return the believed edge, or the best of those that lead to no avoided node."""
        if edge is not None and (child := select_child(edge)).id not in avoided:
            return edge, child
        edges = [edge for edge in node.live if select_child(edge).id not in avoided]
        if not edges:
            return None
        edge = self._pick(node, edges, self._policy)
        return edge, select_child(edge)


def is_settled(steps: list[Step]) -> bool:
    """Return whether a way leads through a solved or dead node or edge."""
    return any(node.status or edge.status for node, edge in steps)
