"""Positions in the picture of the tree: one column per depth, without crossings.

The candidates of one parent form a group. Promoted ones are on top, one per row. Rejected ones are
below: one per row, or dots in a grid if there are many. Groups of a column are as near to their
parents as possible without overlap, so the best path is a straight line where there is room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from treewright.tree.records.model import Evaluation, Node
from treewright.tree.report.run_facts import Facts
from treewright.tree.report.tables import is_rejected

COLUMN = 300.0
NODE_ROW = 40.0
REJECTED_ROW = 19.0
DOT = 12.0
DOTS_A_ROW = 18
MOST_DOTS = 5 * DOTS_A_ROW
_MOST_LABELLED = 90
_GROUP_GAP = 14.0


@dataclass(frozen=True, slots=True)
class Group:
    """The candidates of one parent at one depth, and the height of their drawing."""

    parent_id: str
    nodes: list[Node]
    rejected: list[Evaluation]
    labelled: bool
    anchor: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions by id. `grids` are groups without labels, with their top left corner."""

    nodes: dict[str, tuple[float, float]]
    rejected: dict[str, tuple[float, float]]
    grids: list[tuple[Group, float, float]]
    columns: int
    height: float


def lay_out(facts: Facts) -> Layout:
    """Return the positions of every node and every rejected or unfinished evaluation."""
    columns = _groups_by_depth(facts)
    root = next(iter(facts.manifest.nodes))
    nodes: dict[str, tuple[float, float]] = {root: (0.0, 0.0)}
    rejected: dict[str, tuple[float, float]] = {}
    grids: list[tuple[Group, float, float]] = []
    for depth in sorted(columns):
        groups = sorted(columns[depth], key=lambda g: (nodes[g.parent_id][1], g.parent_id))
        wanted = [nodes[group.parent_id][1] - group.anchor for group in groups]
        heights = [group.height + _GROUP_GAP for group in groups]
        for group, top in zip(groups, spread_tops(wanted, heights), strict=True):
            _place(group, depth * COLUMN, top, nodes, rejected, grids)
    return _shifted(nodes, rejected, grids, max(columns, default=0) + 1)


def spread_tops(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Return tops in the same order that do not overlap and are nearest to the wanted tops.

    The sum of squared distances is least. Neighbours that would overlap are pooled.
    """
    blocks: list[tuple[float, float, int]] = []
    for top, height in zip(wanted, heights, strict=True):
        total, size, count = top, height, 1
        while blocks and blocks[-1][0] / blocks[-1][2] + blocks[-1][1] > total / count:
            before_total, before_size, before_count = blocks.pop()
            total = before_total + total - before_size * count
            size, count = before_size + size, before_count + count
        blocks.append((total, size, count))
    tops: list[float] = []
    for total, _, count in blocks:
        top = total / count
        for _ in range(count):
            tops.append(top)
            top += heights[len(tops) - 1]
    return tops


def _groups_by_depth(facts: Facts) -> dict[int, list[Group]]:
    manifest = facts.manifest
    promoted: dict[tuple[int, str], list[Node]] = defaultdict(list)
    others: dict[tuple[int, str], list[Evaluation]] = defaultdict(list)
    for node in manifest.nodes.values():
        if node.parent_node_id is not None:
            promoted[node.depth, node.parent_node_id].append(node)
    for evaluation in manifest.evaluations.values():
        if evaluation.decision is None or is_rejected(evaluation):
            others[evaluation.depth, evaluation.parent_node_id].append(evaluation)
    labelled = sum(map(len, others.values())) <= _MOST_LABELLED
    on_path = facts.on_path
    columns: dict[int, list[Group]] = defaultdict(list)
    for depth, parent_id in sorted({*promoted, *others}):
        nodes = promoted[depth, parent_id]
        nodes.sort(key=lambda node: (node.node_id not in on_path, node.node_id))
        columns[depth].append(_group(parent_id, nodes, others[depth, parent_id], labelled))
    return columns


def _group(parent_id: str, nodes: list[Node], rejected: list[Evaluation], labelled: bool) -> Group:
    height = len(nodes) * NODE_ROW
    if labelled:
        height += len(rejected) * REJECTED_ROW
    elif rejected:
        shown = min(len(rejected), MOST_DOTS)
        height += (-(-shown // DOTS_A_ROW) + (len(rejected) > shown)) * DOT + 12
    anchor = NODE_ROW / 2 if nodes else height / 2
    return Group(parent_id, nodes, rejected, labelled, anchor, height)


def _place(
    group: Group,
    x: float,
    top: float,
    nodes: dict[str, tuple[float, float]],
    rejected: dict[str, tuple[float, float]],
    grids: list[tuple[Group, float, float]],
) -> None:
    for node in group.nodes:
        nodes[node.node_id] = (x, top + NODE_ROW / 2)
        top += NODE_ROW
    if not group.labelled:
        if group.rejected:
            grids.append((group, x, top + 9))
        return
    for evaluation in group.rejected:
        rejected[evaluation.eval_id] = (x, top + REJECTED_ROW / 2)
        top += REJECTED_ROW


def _shifted(
    nodes: dict[str, tuple[float, float]],
    rejected: dict[str, tuple[float, float]],
    grids: list[tuple[Group, float, float]],
    columns: int,
) -> Layout:
    tops = [y - NODE_ROW / 2 for _, y in nodes.values()]
    bottoms = [y + NODE_ROW / 2 for _, y in nodes.values()]
    tops += [y - REJECTED_ROW / 2 for _, y in rejected.values()] + [y for _, _, y in grids]
    bottoms += [y + REJECTED_ROW / 2 for _, y in rejected.values()]
    bottoms += [y + group.height - len(group.nodes) * NODE_ROW for group, _, y in grids]
    up = min(tops)
    return Layout(
        {key: (x, y - up) for key, (x, y) in nodes.items()},
        {key: (x, y - up) for key, (x, y) in rejected.items()},
        [(group, x, y - up) for group, x, y in grids],
        columns,
        max(bottoms) - up,
    )
