"""The policies over trees: each is a pure function that chooses which node grows next.

A policy in the box is one file and one line here. Another package registers its own under the
entry-point group `treewright.policies`.
"""

from __future__ import annotations

from treewright.search.policies.ab_mcts import AbMcts
from treewright.search.policies.beam import Beam
from treewright.search.policies.best_first import BestFirst
from treewright.search.policies.mcts import Mcts
from treewright.search.policies.policy import Choice, Policy
from treewright.search.policies.random import Random
from treewright.search.policy_registry import PolicyRegistry

BUILT_IN: tuple[type[Policy], ...] = (Beam, BestFirst, Mcts, AbMcts, Random)
POLICIES: PolicyRegistry[Policy] = PolicyRegistry(
    "treewright.policies",
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
    "AbMcts",
    "Beam",
    "BestFirst",
    "Choice",
    "Mcts",
    "Policy",
    "Random",
    "describe",
    "known",
    "make",
    "unusable",
]
