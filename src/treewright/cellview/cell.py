"""One cell: where it stands, what it believes, and how it finds the next node to work on.

It looks only at nodes from where it stands downwards, at most `radius` steps if its view is one.
Its beliefs are as old as its last look. What it steps on it feels: a settled, taken or blocked
node is noticed there and then.
"""

from __future__ import annotations

from collections.abc import Container
from math import inf
from random import Random

from treewright.cellview.algotypes import behaviour
from treewright.cellview.damage import Damage
from treewright.proving.cell_settings import CellSettings
from treewright.proving.expansion import Expander
from treewright.search.andor.graph import Edge, Node
from treewright.search.andor.policies.mcts import Mcts, select_child
from treewright.search.andor.statistics import release, reserve

_MOST_DETOURS = 8

Step = tuple[Node, Edge]
Belief = tuple[int, Edge | None]
"""When the cell looked at a node, and what it made of the numbers there: the edge to follow, or
None, to try another tactic at the node itself."""

_NOTHING: tuple[float, None] = (-inf, None)


class Cell:
    """A local controller. It does one thing at a time, and holds one reservation at most."""

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
        self._pick, self._widens = behaviour(self.algotype, rng)
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
        self._shunned: set[int] = set()
        self.path: list[Step] = []
        self.leaf = self._tree.root
        self.settled_then = 0
        self.obstacle: Node | None = None
        self.reroutes = 0
        self.go_home()

    # -- moving ---------------------------------------------------------------------------

    def go_home(self) -> None:
        """Back to the root, to choose a place anew."""
        self._turns = 0
        self._stand_at(self._tree.root, [])

    def shun(self, node: Node) -> None:
        """Goes elsewhere: away from a node until its stay is over."""
        self._shunned.add(node.id)
        self.reroutes += 1
        self.go_home()

    def forget_detours(self) -> None:
        self._shunned.clear()
        self.reroutes = 0

    def _stand_at(self, node: Node, trail: list[Step]) -> None:
        """A new place, a new view: what was believed is forgotten.

        The cell moves on when a way leaves its view; on its way from the root it settles sooner.
        """
        self.stand = node
        self.trail = trail
        self._beliefs: dict[Node, Belief] = {}
        steps = len(trail)
        self._sees = steps + self._reach
        if not self._turns and steps < self._stride:
            self._sees = min(self._sees, self._stride)

    def _leave_settled_ground(self) -> None:
        if self.stand.status or is_settled(self.trail):
            self.go_home()

    # -- looking --------------------------------------------------------------------------

    def _look(self, node: Node, now: int) -> Edge | None:
        """Forms a belief from the numbers as they are now."""
        live = node.live
        if not live or (not node.exhausted and self._widens(node, self._policy)):
            edge = None
        elif len(live) == 1:
            edge = live[0]
        else:
            edge = self._pick(node, live, self._policy)
        self._beliefs[node] = (now, edge)
        return edge

    def _believed(self, node: Node, now: int) -> Edge | None:
        """The edge to follow, or None. A belief that is old or shows to be wrong is renewed."""
        seen, edge = self._beliefs.get(node, _NOTHING)
        if edge is None:
            wrong = node.live and node.exhausted
        else:
            wrong = edge.status
        if wrong or now - seen >= self._refresh:
            return self._look(node, now)
        return edge

    def learn(self, leaf: Node, now: int) -> None:
        """After its own work the cell looks at the nodes on its way again."""
        self._turns += 1
        if self._turns >= self._stay:
            self._shunned.clear()
            self.go_home()
            return
        # As `_look` does, written out: half of what a cell does beyond choosing is done here.
        widens, pick, policy, beliefs = self._widens, self._pick, self._policy, self._beliefs
        nodes = [node for node, _ in self.path[len(self.trail) :]]
        nodes.append(leaf)
        for node in nodes:
            live = node.live
            if not live or (not node.exhausted and widens(node, policy)):
                beliefs[node] = now, None
            else:
                beliefs[node] = now, live[0] if len(live) == 1 else pick(node, live, policy)

    # -- choosing -------------------------------------------------------------------------

    def choose(self, now: int, taken: Container[int]) -> Node | None:
        """The node to work on next, reserved with the `path` that leads to it.

        None when there is none: either the `obstacle` in the way is blocked, or everything the
        cell can get at is taken.
        """
        settled = self._tree.solved + self._tree.dead
        if settled != self.settled_then:
            self.settled_then = settled
            self._leave_settled_ground()
        self.obstacle = None
        on_nodes = self._damage.on_nodes
        if on_nodes and self._damage.blocks_node(self.stand.id, now):
            self.obstacle = self.stand
            return None
        if not (on_nodes or self._shunned or self._limited):
            leaf = self.leaf = self._walk(now)
            if leaf.id not in taken:
                return leaf
            release(self.path, leaf)
        leaf = self._feel_the_way(now, taken, self._depth_limit)
        if leaf is None and self.obstacle is None and self._limited:
            leaf = self._feel_the_way(now, taken, inf)
        if leaf is not None:
            self.leaf = leaf
            reserve(self.path, leaf)
        return leaf

    def _walk(self, now: int) -> Node:
        """Straight down by what is believed. What it steps on it reserves at once: nothing that
        it looks at later on its way depends on that."""
        trail = self.trail
        path = self.path = trail.copy()
        for node, edge in trail:
            node.virtual += 1
            edge.virtual += 1
        node = self.stand
        sees, oldest, beliefs = self._sees, now - self._refresh, self._beliefs
        while True:
            # As `_believed` does, without a call for what is believed still.
            belief = beliefs.get(node)
            if belief is None:
                # At a leaf it will look when it has worked there.
                edge = self._look(node, now) if node.live else None
            else:
                seen, edge = belief
                wrong = (node.live and node.exhausted) if edge is None else edge.status
                if wrong or seen <= oldest:
                    edge = self._look(node, now)
            node.virtual += 1
            if edge is None:
                return node
            edge.virtual += 1
            path.append((node, edge))
            children = edge.children
            node = children[0] if len(children) == 1 else select_child(edge)
            if len(path) >= sees:
                self._stand_at(node, path.copy())
                sees, beliefs = self._sees, self._beliefs

    def _feel_the_way(self, now: int, taken: Container[int], deepest: float) -> Node | None:
        """Down, but around what is taken, shunned or too deep, with a few steps back at most."""
        path = self.path = self.trail.copy()
        node = self.stand
        avoided = self._shunned.copy()
        turned_back = bool(avoided)
        detours = 0
        while detours <= _MOST_DETOURS:
            edge = self._believed(node, now)
            if edge is None and node.id not in taken:
                return node
            too_deep = len(path) - len(self.trail) >= deepest
            turned_back = turned_back or too_deep
            step = None if too_deep else self._open_step(node, edge, avoided)
            if step is not None:
                if self._damage.on_nodes and self._damage.blocks_node(step[1].id, now):
                    self.obstacle = step[1]
                    return None
                path.append((node, step[0]))
                node = step[1]
                if len(path) >= self._sees:
                    self._stand_at(node, path.copy())
                continue
            # What is taken is worth waiting for; around the rest another tactic may lead.
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
        """Along the believed edge, or the best of those that lead to nothing avoided."""
        if edge is not None and (child := select_child(edge)).id not in avoided:
            return edge, child
        edges = [edge for edge in node.live if select_child(edge).id not in avoided]
        if not edges:
            return None
        edge = self._pick(node, edges, self._policy)
        return edge, select_child(edge)


def is_settled(steps: list[Step]) -> bool:
    """Whether a way leads through something that is solved or dead, so that it leads nowhere."""
    return any(node.status or edge.status for node, edge in steps)
