"""The policies over AND/OR graphs: each chooses which goal is worked on next.

A policy in the box is one file and one line here. Another package registers its own under the
entry-point group `treewright.andor_policies`.
"""

from __future__ import annotations

from treewright.search.andor.policies.beam import Beam
from treewright.search.andor.policies.best_first import BestFirst
from treewright.search.andor.policies.goal_policy import Descent, Policy
from treewright.search.andor.policies.mcts import Mcts
from treewright.search.andor.policies.random import Random
from treewright.search.policy_registry import PolicyRegistry

BUILT_IN: tuple[type[Policy], ...] = (Mcts, BestFirst, Beam, Random)
POLICIES: PolicyRegistry[Policy] = PolicyRegistry(
    "treewright.andor_policies",
    Policy,
    {kind.name: f"{kind.__module__}:{kind.__name__}" for kind in BUILT_IN},
)

known = POLICIES.usable
make = POLICIES.make
unusable = POLICIES.unusable
describe = POLICIES.describe

__all__ = [
    "BUILT_IN",
    "POLICIES",
    "Beam",
    "BestFirst",
    "Descent",
    "Mcts",
    "Policy",
    "Random",
    "describe",
    "known",
    "make",
    "unusable",
]
