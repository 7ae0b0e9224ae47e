"""One cell: where it stands, what it has seen, and how it finds the next node to work on.

It looks only at nodes from where it stands downwards, at most `radius` steps if its view is one.
Statistics are its own, as old as its last look. What it steps on it feels: a settled, taken or
blocked node is noticed there and then.
"""

from __future__ import annotations

from math import inf
from random import Random

from treewright.mcts.cellview.algotypes import BEHAVIOUR
from treewright.mcts.cellview.damage import Damage
from treewright.mcts.cellview.settings import CellSettings
from treewright.mcts.cellview.sight import Sight, Way
from treewright.mcts.expansion import Expander
from treewright.mcts.prooftree import Edge, Node

_MOST_DETOURS = 8

Step = tuple[Node, Edge]


class Cell:
    """A local controller. It does one thing at a time."""

    def __init__(
        self, agent: int, expander: Expander, settings: CellSettings, damage: Damage, seed: int
    ) -> None:
        self.agent = agent
        self.algotype = settings.algotype(agent)
        self._pick, self._widens = BEHAVIOUR[self.algotype]
        self._expander = expander
        self._tree = expander.tree
        self._settings = settings
        self._policy = settings.policy
        self._damage = damage
        self._rng = Random(f"{seed}:walk:{agent}")  # noqa: S311
        self._reach = settings.radius if settings.view == "radius" else inf
        self._turns = 0
        self._settled_then = 0
        self._shunned: set[int] = set()
        self._sights: dict[int, Sight] = {}
        self.stand: Node = expander.tree.root
        self.trail: list[Step] = []
        self.path: list[Step] = []
        self.obstacle: Node | None = None
        self.reroutes = 0

    # -- moving ---------------------------------------------------------------------------

    def go_home(self) -> None:
        """Back to the root, to choose a place anew. What it saw on the way there is forgotten."""
        self._stand_at(self._tree.root, [])
        self._turns = 0

    def shun(self, node: Node) -> None:
        """Goes elsewhere: away from a node until its stay is over."""
        self._shunned.add(node.id)
        self.reroutes += 1
        self.go_home()

    def forget_detours(self) -> None:
        self._shunned.clear()
        self.reroutes = 0

    def _stand_at(self, node: Node, trail: list[Step]) -> None:
        self.stand = node
        self.trail = trail
        self._sights = {}

    def _leave_settled_ground(self) -> None:
        settled = self._tree.solved + self._tree.dead
        if settled != self._settled_then:
            self._settled_then = settled
            if self.stand.status or is_settled(self.trail):
                self.go_home()

    # -- looking --------------------------------------------------------------------------

    def sight(self, node: Node, now: int) -> Sight:
        """What the cell believes about a node."""
        seen = self._sights.get(node.id)
        if (
            seen is None
            or now - seen.tick >= self._settings.refresh
            or (node.live and not seen.ways)  # it was bare when last seen
        ):
            return self._look(node, now)
        return seen

    def _look(self, node: Node, now: int) -> Sight:
        seen = self._sights[node.id] = Sight(node, now)
        return seen

    def learn(self, leaf: Node, now: int) -> None:
        """After its own work the cell sees the nodes on its way as they are now."""
        self._turns += 1
        if self._turns >= self._settings.stay:
            self._shunned.clear()
            self.go_home()
            return
        for node, _ in self.path[len(self.trail) :]:
            self._look(node, now)
        self._look(leaf, now)

    # -- choosing -------------------------------------------------------------------------

    def choose(self, now: int, taken: set[int]) -> Node | None:
        """The node to work on next, with `path` leading to it.

        None when there is none: either the `obstacle` in the way is blocked, or everything the
        cell can get at is taken.
        """
        self._leave_settled_ground()
        self.obstacle = None
        if self._damage.on_nodes and self._damage.blocks_node(self.stand.id, now):
            self.obstacle = self.stand
            return None
        limited = self.algotype == "depth_first"
        leaf = self._walk(now, taken, self._settings.depth_limit if limited else inf)
        if leaf is None and limited and self.obstacle is None:
            leaf = self._walk(now, taken, inf)
        return leaf

    def _walk(self, now: int, taken: set[int], deepest: float) -> Node | None:
        path = self.path = self.trail.copy()
        node = self.stand
        avoided = self._shunned.copy()
        detours = 0
        while detours <= _MOST_DETOURS:
            sight = self.sight(node, now)
            if self._is_leaf(node, sight):
                if node.id not in taken:
                    return node
            elif way := self._way(node, sight, avoided, now):
                if len(path) - len(self.trail) >= deepest:
                    avoided.add(way[3].id)
                    detours += 1
                    continue
                if self._damage.on_nodes and self._damage.blocks_node(way[3].id, now):
                    self.obstacle = way[3]
                    return None
                path.append((node, way[0]))
                node = way[3]
                if self._at_the_edge_of_view(len(path)):
                    self._stand_at(node, path.copy())
                continue
            elif self._may_open(node, taken, deepest):
                return node
            if len(path) == len(self.trail):
                return None
            avoided.add(node.id)
            node, _ = path.pop()
            self._look(node, now)
            detours += 1
        return None

    def _is_leaf(self, node: Node, sight: Sight) -> bool:
        expander = self._expander
        return (
            not sight.ways
            or expander.untouched(node)
            or (self._widens(sight, self._policy, self._rng) and expander.has_more(node))
        )

    def _way(self, node: Node, sight: Sight, avoided: set[int], now: int) -> Way | None:
        """A way that is open. What was seen may be out of date: then the cell looks again."""
        ways = sight.ways
        while True:
            if avoided:
                ways = [way for way in ways if way[3].id not in avoided]
            if not ways:
                return None
            way = self._pick(sight, ways, self._policy, self._rng)
            if not (way[0].status or way[3].status):
                return way
            sight = self._look(node, now)
            ways = sight.ways

    def _may_open(self, node: Node, taken: set[int], deepest: float) -> bool:
        """Where every way is shunned or too deep, another tactic is tried before turning back.

        Where ways are only taken by others it is not: their results are worth waiting for.
        """
        turned_back = bool(self._shunned) or deepest < inf
        return turned_back and node.id not in taken and self._expander.has_more(node)

    def _at_the_edge_of_view(self, steps: int) -> bool:
        if steps - len(self.trail) >= self._reach:
            return True
        return not self._turns and steps == self._settings.stride


def is_settled(steps: list[Step]) -> bool:
    """Whether a way leads through something that is solved or dead, so that it leads nowhere."""
    return any(node.status or edge.status for node, edge in steps)
