"""The effect of a `steered` event on a manifest. The only side effect is on that manifest."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from treewright.tree.records import events as ev
from treewright.tree.records.model import FileDigest, IdeaRecord, Manifest, Node, Unset


def apply(manifest: Manifest, event: ev.Steered) -> None:
    """Apply a command to the manifest, unless it has been applied before."""
    known = [] if isinstance(manifest.steering, Unset) else manifest.steering
    if any(record.command.command_id == event.record.command.command_id for record in known):
        return
    record = msgspec.structs.replace(event.record, at=event.at)
    manifest.steering = [*known, record]
    if record.refused is not None:
        return
    for name, value in record.command.settings.items():
        setattr(manifest, name, value)
    if record.reopened and manifest.policy_record is None:
        del manifest.depths[manifest.current_depth :]  # a round that had begun without ideas
    for node_id in record.reopened:
        _reopen(manifest, manifest.nodes[node_id])
    if not isinstance(event.idea, Unset) and record.node_id is not None:
        _add(manifest, manifest.nodes[record.node_id], event.idea)
    if not isinstance(event.frontier, Unset):
        manifest.frontier = list(event.frontier)
        if manifest.policy_record is None:
            for node_id in manifest.frontier:
                node = manifest.nodes[node_id]
                begun = node.expanded_for_depth == manifest.current_depth + 1
                node.status = "expanded" if begun else "frontier"
            for node in manifest.nodes.values():
                if node.node_id not in event.frontier:
                    node.status = "expanded"
    if not isinstance(event.stop_reason, Unset):
        manifest.stop_reason = event.stop_reason


def _reopen(manifest: Manifest, node: Node) -> None:
    """Let a node be expanded again that was found without ideas. Only for runs with a barrier."""
    if manifest.policy_record is not None:
        return
    depth = max((idea.depth for idea in node.ideas), default=None)
    node.expanded_for_depth = depth
    node.generated_idea_files = [idea.path for idea in node.ideas if idea.depth == depth]
    node.context_idea_files = [
        FileDigest(idea.path, idea.sha256)
        for ancestor in _lineage(manifest, node)
        for idea in ancestor.ideas
        if depth is not None and idea.depth < depth
    ]
    if depth is None and node.node_id in manifest.expanded:
        manifest.expanded.remove(node.node_id)


def _add(manifest: Manifest, node: Node, idea: IdeaRecord) -> None:
    """Add an idea of the user to a node.

    With a barrier, a node outside of the frontier gets no other ideas: it counts as expanded for
    the depth of the idea.
    """
    node.ideas = [*node.ideas, idea]
    if manifest.policy_record is not None:
        if isinstance(idea.expansion, int):
            manifest.policy_record.expansions = max(
                manifest.policy_record.expansions, idea.expansion
            )
        return
    if node.expanded_for_depth == idea.depth or node.node_id not in manifest.frontier:
        node.expanded_for_depth = idea.depth
        same = [each.path for each in node.ideas if each.depth == idea.depth]
        node.generated_idea_files = same
        if node.node_id not in manifest.expanded:
            manifest.expanded.append(node.node_id)


def _lineage(manifest: Manifest, node: Node) -> Iterator[Node]:
    yield node
    while node.parent_node_id is not None:
        node = manifest.nodes[node.parent_node_id]
        yield node
