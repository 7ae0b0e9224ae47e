"""The centralized engine: one searcher that sees the whole tree. The baseline.

A simulation goes down from the root by the policy, tries tactics where it may, and backs up what
it found. Solved and dead nodes are never entered. Nothing here depends on time or chance: noise
on priors, if wanted, comes with the candidates (`sources.noise`).
"""

from __future__ import annotations

from treewright.mcts.expansion import Expander
from treewright.mcts.policy import Policy, back_up, may_widen, select_child, select_edge
from treewright.mcts.prooftree import Edge, Node, Status
from treewright.mcts.settings import Settings
from treewright.mcts.turn import Turn, reason_of


def make_runner(settings: Settings, expander: Expander) -> CentralizedEngine:
    return CentralizedEngine(expander, settings.policy)


class CentralizedEngine:
    """Grows a tree one simulation at a time."""

    def __init__(self, expander: Expander, policy: Policy) -> None:
        self.expander = expander
        self.tree = expander.tree
        self._policy = policy

    @property
    def finished(self) -> bool:
        """Whether the root is settled: solved, or nothing is left to try."""
        return self.tree.root.status is not Status.OPEN

    def step(self) -> Turn:
        """One simulation. The root must not be settled."""
        path, leaf = self._descend()
        expansion = self.expander.expand(leaf)
        back_up(path, leaf, expansion.value, self._policy)
        return Turn(path, leaf, expansion, reason_of(leaf, expansion))

    def drain(self) -> None:
        """Between two simulations nothing is under way."""

    def _descend(self) -> tuple[list[tuple[Node, Edge]], Node]:
        node = self.tree.root
        path: list[tuple[Node, Edge]] = []
        policy, has_more = self._policy, self.expander.has_more
        while node.live and not (has_more(node) and may_widen(node, policy)):
            edge = select_edge(node, policy)
            path.append((node, edge))
            node = select_child(edge)
        return path, node
