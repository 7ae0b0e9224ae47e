"""What agents are told about the node they start from, as Markdown."""

from __future__ import annotations

from pathlib import Path

from treewright.tree.expansion import ancestors, last_summary
from treewright.tree.ideas.node_context import measured
from treewright.tree.model import Manifest, Node
from treewright.tree.report.facts import read_title


def describe_node(run_dir: Path, manifest: Manifest, node: Node) -> str:
    """The accepted ideas so far, and how the node compares with its parent and the root."""
    if node.parent_node_id is None:
        return f"This is the root of the search, commit {node.commit[:12]}."
    lines = [f"Node {node.node_id} at depth {node.depth}, commit {node.commit[:12]}.", ""]
    lines.append("Ideas already applied, oldest first:")
    for ancestor in reversed(list(ancestors(manifest, node))):
        if ancestor.idea_chain:
            path = run_dir / ancestor.idea_chain[-1]
            lines.append(f"- {read_title(path)}")
    lines += ["", *measured(last_summary(run_dir, manifest, node))]
    return "\n".join(lines).rstrip("\n")
