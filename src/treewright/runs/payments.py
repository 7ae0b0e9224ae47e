"""What a tree run has paid by when: for evaluations, for ideas, and for what was lost."""

from __future__ import annotations

from typing import NamedTuple

from treewright.kernel.clock import seconds_between
from treewright.runs.tree_run import TreeRun
from treewright.tree.records import store
from treewright.tree.records.model import Unset


class Payment(NamedTuple):
    """`seconds` since the run began."""

    seconds: float
    cost_usd: float


def payments(run: TreeRun) -> list[Payment] | None:
    """The earliest first; None if not all of it has a price."""
    manifest = run.manifest
    usages = [one.usage for one in manifest.evaluations.values()]
    usages += [] if isinstance(manifest.roles, Unset) else manifest.roles.values()
    if manifest.spent.unpriced_tokens or any(u.tokens and not u.cost_usd for u in usages):
        return None
    return sorted(
        Payment(seconds_between(manifest.created_at, at) or 0.0, cost)
        for at, cost in (store.payments(run.path) if manifest.spent.cost_usd else ())
    )
