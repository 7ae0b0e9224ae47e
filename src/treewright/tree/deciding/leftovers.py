"""Leftover ideas: they were chosen for a node, and no evaluation has tried them.

Leftovers are offered to the node's children before new ideas are generated. In beam search they
are ideas that the budget or a stop left without an evaluation, and the node itself gets them too
when it is expanded again. In a search by policy they are the ideas that the node still waits to
try.

With the dedupe scope `none` nothing is offered, because every source may propose an idea again.
With `global`, a search by policy offers nothing either: an idea is tried once in the run, and its
own node may still try it. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from treewright.tree.records.model import IdeaRecord, Manifest, Node

LEFTOVER = "left over: "
"""The origin of an offered leftover; the path of the idea that it repeats follows."""


def source_of(idea: IdeaRecord) -> str | None:
    """Return the path of the idea that this one repeats; None if it is no leftover."""
    return idea.origin.removeprefix(LEFTOVER) if idea.origin.startswith(LEFTOVER) else None


def for_depth(
    manifest: Manifest, lineage: list[Node], depth: int, tried: Collection[str], taken: set[str]
) -> list[IdeaRecord]:
    """Return the leftovers for a node in a depth of beam search.

    Args:
        manifest: The run.
        lineage: The node and its ancestors.
        depth: The depth.
        tried: The paths of ideas that earlier depths evaluated.
        taken: The keys of ideas of this depth that the scope forbids to try twice.
    """
    if manifest.dedupe_scope == "none":
        return []
    if manifest.dedupe_scope == "global":
        taken = taken | _keys(manifest.nodes.values(), tried)
    ideas = [idea for node in lineage for idea in node.ideas if idea.depth < depth]
    return _untried(ideas, tried, taken | _keys(lineage, tried))


def for_expansion(
    manifest: Manifest, lineage: list[Node], expansion: int, tried: Collection[str]
) -> list[IdeaRecord]:
    """Return the leftovers for a node in the expansion of that number, in a search by policy."""
    if manifest.dedupe_scope != "node_plus_ancestors":
        return []
    node, *above = lineage
    own = {idea.key for idea in node.ideas if _is_before(idea, expansion)}
    ideas = [idea for each in above for idea in each.ideas if _is_before(idea, expansion)]
    return _untried(ideas, tried, own | _keys(above, tried))


def _is_before(idea: IdeaRecord, expansion: int) -> bool:
    return isinstance(idea.expansion, int) and idea.expansion < expansion


def _keys(nodes: Iterable[Node], tried: Collection[str]) -> set[str]:
    return {idea.key for node in nodes for idea in node.ideas if idea.path in tried}


def _untried(
    ideas: Iterable[IdeaRecord], tried: Collection[str], taken: Collection[str]
) -> list[IdeaRecord]:
    found: dict[str, IdeaRecord] = {}
    for idea in ideas:
        if idea.path not in tried and idea.key not in taken:
            found.setdefault(idea.key, idea)
    return list(found.values())
