"""The policies over AND/OR graphs in the box, and those of plug-ins.

As with `search.policies`: a policy is one file and one line here; another package registers its
own under the entry-point group `treewright.andor_policies`.
"""

from __future__ import annotations

from treewright.search.andor.policies.base import Policy, Way
from treewright.search.andor.policies.beam import Beam
from treewright.search.andor.policies.best_first import BestFirst
from treewright.search.andor.policies.mcts import Mcts
from treewright.search.andor.policies.random import Random
from treewright.search.registry import Registry

GROUP = "treewright.andor_policies"
BUILT_IN: tuple[type[Policy], ...] = (Mcts, BestFirst, Beam, Random)
_REGISTRY: Registry[Policy] = Registry(GROUP, Policy, BUILT_IN)

known = _REGISTRY.known
make = _REGISTRY.make
unusable = _REGISTRY.unusable
describe = _REGISTRY.describe

__all__ = [
    "BUILT_IN",
    "GROUP",
    "Beam",
    "BestFirst",
    "Mcts",
    "Policy",
    "Random",
    "Way",
    "describe",
    "known",
    "make",
    "unusable",
]
