"""The policies in the box, and those of plug-ins.

A policy is one file and one line here; the command line, validation, reports and the dashboard
learn its name, its settings and its summary from `known`. Another package registers its own under
the entry-point group `treewright.policies`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any

import msgspec

from treewright.kernel.errors import UsageError
from treewright.search.policies.ab_mcts import AbMcts
from treewright.search.policies.base import Choice, Policy
from treewright.search.policies.beam import Beam
from treewright.search.policies.best_first import BestFirst
from treewright.search.policies.mcts import Mcts
from treewright.search.policies.random import Random

GROUP = "treewright.policies"
_BUILT_IN: tuple[type[Policy], ...] = (Beam, BestFirst, Mcts, AbMcts, Random)

__all__ = ["GROUP", "AbMcts", "Beam", "BestFirst", "Choice", "Mcts", "Policy", "Random"]


@lru_cache(maxsize=1)
def known() -> dict[str, type[Policy]]:
    """By name, those in the box first. A plug-in cannot take a name that is in use."""
    policies = {policy.name: policy for policy in _BUILT_IN}
    for entry in entry_points(group=GROUP):
        if entry.name in policies:
            raise UsageError(f"the plug-in {entry.value} calls its policy {entry.name!r}, as ours")
        policies[entry.name] = entry.load()
    return policies


def make(name: str, options: dict[str, Any] | None = None) -> Policy:
    """The policy of that name with these settings."""
    kind = known().get(name)
    if kind is None:
        raise UsageError(f"no policy {name!r}; there are {', '.join(known())}")
    names = {field.encode_name for field in msgspec.structs.fields(kind)}
    for option in options or {}:
        if option not in names:
            there = ", ".join(sorted(names)) or "none"
            raise UsageError(f"policy {name} has no setting {option!r}; there are: {there}")
    try:
        return msgspec.convert({"type": name, **(options or {})}, kind)
    except msgspec.ValidationError as error:
        raise UsageError(f"policy {name}: {error}") from None


def describe(policy: Policy) -> dict[str, Any]:
    """What `make` needs to make it again."""
    options = msgspec.to_builtins(policy)
    options.pop("type", None)
    return options
