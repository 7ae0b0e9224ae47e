"""The centralized engine: one searcher that sees the whole graph. It is the baseline.

A simulation is the policy's choice of a goal, a few tactics tried there, and the new values.
Nothing depends on time. Random numbers, for policies that use them, come from the seed.
"""

from __future__ import annotations

from treewright.proving.expansion import Expander
from treewright.proving.search import StepReport, expansion_reason
from treewright.proving.settings import Settings
from treewright.search.andor.graph import Status
from treewright.search.andor.policies import Policy


def make_runner(settings: Settings, expander: Expander) -> CentralizedEngine:
    """Return the runner of the mode `centralized`."""
    return CentralizedEngine(expander, settings.policy, settings.seed)


class CentralizedEngine:
    """A runner that grows a graph one simulation at a time."""

    def __init__(self, expander: Expander, policy: Policy, seed: int = 0) -> None:
        self.expander = expander
        self.tree = expander.tree
        self._policy = policy
        self._stream = seed << 64

    @property
    def finished(self) -> bool:
        """Whether the root is settled: it is solved, or nothing is left to try."""
        return self.tree.root.status is not Status.OPEN

    def step(self) -> StepReport:
        """Make one simulation. The root must not be settled."""
        self._stream += 1
        way = self._policy.choose(self.tree, self._stream)
        leaf = way[1]
        expansion = self.expander.expand(leaf)
        self._policy.learn(self.tree, way, expansion.value, expansion.changes)
        return StepReport(way[0], leaf, expansion, expansion_reason(leaf, expansion))

    def pause(self) -> None:
        """Do nothing: between two simulations no request is under way."""

    def drain(self) -> None:
        """Do nothing: between two simulations no request is under way."""
