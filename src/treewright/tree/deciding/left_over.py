"""Ideas that a node did not get to: they were chosen for it, and no evaluation has tried them.

They are offered to its children before new ideas are generated. By depth these are ideas that the
budget or a stop left without an evaluation, and the node itself is offered them too when it is
expanded again. Without a barrier they are the ideas that the node still waits to try.

With the dedupe scope `none` nothing is offered, because every source may propose an idea again.
With `global` and without a barrier nothing is offered either: an idea is tried once in the run, and
its node may still get to it. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from treewright.tree.records.model import IdeaRecord, Manifest, Node

LEFT_OVER = "left over: "
"""The origin of an idea that was offered so; the path of the idea that it repeats follows."""


def source_of(idea: IdeaRecord) -> str | None:
    """Return the path of the idea that this one repeats; None if it is no left-over."""
    return idea.origin.removeprefix(LEFT_OVER) if idea.origin.startswith(LEFT_OVER) else None


def by_depth(
    manifest: Manifest, lineage: list[Node], depth: int, tried: Collection[str], taken: set[str]
) -> list[IdeaRecord]:
    """Return what a node is offered in a depth; `taken` are the keys of ideas that are tried in
    this depth anyway, where the scope forbids to try them twice."""
    if manifest.dedupe_scope == "none":
        return []
    if manifest.dedupe_scope == "global":
        taken = taken | _keys(manifest.nodes.values(), tried)
    ideas = [idea for node in lineage for idea in node.ideas if idea.depth < depth]
    return _untried(ideas, tried, taken | _keys(lineage, tried))


def without_barrier(
    manifest: Manifest, lineage: list[Node], expansion: int, tried: Collection[str]
) -> list[IdeaRecord]:
    """Return what a node is offered in the expansion of that number."""
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
