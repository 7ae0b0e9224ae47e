"""The centralized engine: one searcher that sees the whole graph. The baseline.

A simulation is the policy's choice of a goal, a few tactics tried there, and what that taught.
Nothing here depends on time; chance, where a policy or noise on priors wants it, is seeded.
"""

from __future__ import annotations

from treewright.proving.expansion import Expander
from treewright.proving.search import Turn, reason_of
from treewright.proving.settings import Settings
from treewright.search.andor.graph import Status
from treewright.search.andor.policies import Policy


def make_runner(settings: Settings, expander: Expander) -> CentralizedEngine:
    return CentralizedEngine(expander, settings.policy, settings.seed)


class CentralizedEngine:
    """Grows a graph one simulation at a time."""

    def __init__(self, expander: Expander, policy: Policy, seed: int = 0) -> None:
        self.expander = expander
        self.tree = expander.tree
        self._policy = policy
        self._stream = seed << 64

    @property
    def finished(self) -> bool:
        """Whether the root is settled: solved, or nothing is left to try."""
        return self.tree.root.status is not Status.OPEN

    def step(self) -> Turn:
        """One simulation. The root must not be settled."""
        self._stream += 1
        way = self._policy.choose(self.tree, self._stream)
        leaf = way[1]
        expansion = self.expander.expand(leaf)
        self._policy.learn(self.tree, way, expansion.value, expansion.changes)
        return Turn(way[0], leaf, expansion, reason_of(leaf, expansion))

    def pause(self) -> None:
        """Between two simulations nothing is under way."""

    def drain(self) -> None:
        """Between two simulations nothing is under way."""
