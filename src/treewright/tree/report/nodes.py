"""The table of all nodes."""

from __future__ import annotations

from treewright.kernel.text import numbers
from treewright.kernel.text.markdown import code, escape, table
from treewright.tree.records.model import Node
from treewright.tree.report.run_facts import Facts

_HEADER = (
    "node",
    "parent",
    "depth",
    "status",
    "idea",
    "score",
    "primary gain over root",
    "tried",
    "duplicates skipped",
    "commit",
    "ref",
)


def section(facts: Facts) -> str:
    """A row per node, in the order of promotion; the best path is in bold."""
    on_path = facts.on_path
    rows = [_row(facts, node, node.node_id in on_path) for node in facts.manifest.nodes.values()]
    return f"## Nodes\n\n{table(_HEADER, rows, 'llrllrrrrll')}"


def _row(facts: Facts, node: Node, on_path: bool) -> list[str]:
    found = node.root_relative
    shown = (
        numbers.gain(found.primary_gain, found.primary_gain_low, found.primary_gain_high)
        if found
        else "–"
    )
    name = code(node.node_id)
    return [
        f"**{name}**" if on_path else name,
        code(node.parent_node_id) if node.parent_node_id else "–",
        str(node.depth),
        node.status,
        escape(facts.node_title(node), 100),
        numbers.percent(found.score) if found else "–",
        escape(shown),
        str(len(facts.by_parent.get(node.node_id, ()))),
        str(len(node.dedupe.skipped) if node.dedupe else 0),
        code(node.commit[:12]),
        code(node.ref.removeprefix("refs/heads/")) if node.ref else "–",
    ]
