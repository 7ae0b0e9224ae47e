"""The policies in the box, and those of plug-ins.

A policy is one file and one line here; the command line, validation, reports and the dashboard
learn its name, its settings and its summary from `known`. Another package registers its own under
the entry-point group `treewright.policies`.
"""

from __future__ import annotations

from treewright.search.policies.ab_mcts import AbMcts
from treewright.search.policies.base import Choice, Policy
from treewright.search.policies.beam import Beam
from treewright.search.policies.best_first import BestFirst
from treewright.search.policies.mcts import Mcts
from treewright.search.policies.random import Random
from treewright.search.registry import Registry

GROUP = "treewright.policies"
_REGISTRY: Registry[Policy] = Registry(GROUP, Policy, (Beam, BestFirst, Mcts, AbMcts, Random))

known = _REGISTRY.known
make = _REGISTRY.make
unusable = _REGISTRY.unusable
describe = _REGISTRY.describe

__all__ = [
    "GROUP",
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
