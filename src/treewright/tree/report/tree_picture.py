"""A picture of the search tree: promoted nodes, the best path, and rejected candidates in pale.

There is one column per depth, and no line crosses another. The candidates of one parent form a
group. Promoted ones are on top, one per row. Rejected ones are below: one per row, or dots in a
grid if there are many. Groups of a column are as near to their parents as possible without overlap,
so the best path is a straight line where there is room.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from treewright.kernel.text import numbers, svg
from treewright.tree.records.model import Evaluation, Node
from treewright.tree.report import reasons
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


_LEFT = 28.0
_TOP = 64.0
_LABEL_CHARACTERS = 40
_SHORT_LABEL = 28
_RING = svg.tag("circle", class_="ring", r=3.6)
_CROSS = svg.tag("path", class_="cross", d="M-3 -3L3 3M-3 3L3 -3")
_PENDING = svg.tag("rect", class_="pale", x=-3.0, y=-3.0, width=6.0, height=6.0)


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


def draw_tree(facts: Facts) -> str:
    """Return an SVG document."""
    layout = lay_out(facts)
    width = _LEFT + layout.columns * COLUMN
    height = _TOP + layout.height + 16
    title = f"Search tree of run {facts.manifest.tree_run_id}"
    parts = [*_columns(layout, height), *_legend(), *_edges(facts, layout)]
    for group, x, y in layout.grids:
        parts.append(_grid(facts, group, x + _LEFT, y + _TOP))
    for eval_id, (x, y) in layout.rejected.items():
        evaluation = facts.manifest.evaluations[eval_id]
        parts.append(_rejected(facts, evaluation, x + _LEFT, y + _TOP))
    for node_id, (x, y) in layout.nodes.items():
        parts.append(_node(facts, facts.manifest.nodes[node_id], x + _LEFT, y + _TOP))
    return svg.document(width, height, title, parts)


def _columns(layout: Layout, height: float) -> Iterator[str]:
    for depth in range(layout.columns):
        x = _LEFT + depth * COLUMN
        if depth % 2:
            yield svg.tag("rect", class_="band", x=x - 16, y=0, width=COLUMN, height=height)
        name = "root" if depth == 0 else f"depth {depth}"
        yield svg.text(x - 6, 48, name, "soft strong")


def _legend() -> Iterator[str]:
    x = _LEFT
    for mark, label, width in (
        (_disc("best"), "best path", 84),
        (_disc("good"), "promoted", 84),
        (_RING, "measured, not promoted", 160),
        (_CROSS, "failed", 66),
        (_PENDING, "unfinished", 90),
    ):
        yield svg.group([mark, svg.text(11, 4, label, "soft small")], transform=_at(x, 16))
        x += width


def _edges(facts: Facts, layout: Layout) -> Iterator[str]:
    on_path = facts.on_path
    for eval_id, (x, y) in layout.rejected.items():
        parent = layout.nodes[facts.manifest.evaluations[eval_id].parent_node_id]
        yield svg.tag("path", class_="faint", d=_curve(parent, (x - 6, y)))
    for group, x, y in layout.grids:
        yield svg.tag("path", class_="faint", d=_curve(layout.nodes[group.parent_id], (x - 8, y)))
    highlighted = []
    for node_id, (x, y) in layout.nodes.items():
        parent_id = facts.manifest.nodes[node_id].parent_node_id
        if parent_id is not None:
            best = node_id in on_path
            edge = svg.tag(
                "path",
                class_="bestline" if best else "edge",
                d=_curve(layout.nodes[parent_id], (x, y)),
            )
            if best:
                highlighted.append(edge)
            else:
                yield edge
    yield from highlighted


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return a path along the parent's row to the end of its label, then to the child."""
    (x0, y0), (x1, y1) = start, end
    x0, x1 = x0 + _LEFT, x1 + _LEFT
    y0, y1 = y0 + _TOP, y1 + _TOP
    bend = x1 - 44
    middle = (bend + x1) / 2
    n = svg.number
    if abs(y1 - y0) < 0.5:
        return f"M{n(x0)} {n(y0)}H{n(x1)}"
    return f"M{n(x0)} {n(y0)}H{n(bend)}C{n(middle)} {n(y0)} {n(middle)} {n(y1)} {n(x1)} {n(y1)}"


def _node(facts: Facts, node: Node, x: float, y: float) -> str:
    best = node.node_id in facts.on_path
    found = node.root_relative
    score = numbers.percent(found.score) if found else "baseline"
    title = facts.node_title(node) if node.parent_node_id else f"commit {node.commit[:12]}"
    tooltip = f"{node.node_id}: {title}\nscore {score}, commit {node.commit[:12]}"
    name = f"{node.node_id}  {score}"
    return svg.group(
        [
            _disc("best" if best else "good"),
            svg.text(11, -6, name, "strong" if best else ""),
            svg.text(11, 15, svg.clip(title, _LABEL_CHARACTERS), "soft small"),
        ],
        tooltip,
        transform=_at(x, y),
    )


def _rejected(facts: Facts, evaluation: Evaluation, x: float, y: float) -> str:
    label = (
        f"{svg.clip(facts.title(evaluation), _SHORT_LABEL)} · {reasons.describe_fate(evaluation)}"
    )
    parts = [_mark(evaluation), svg.text(9, 4, label, "soft small")]
    return svg.group(parts, _tooltip(facts, evaluation), transform=_at(x, y), opacity=0.75)


def _grid(facts: Facts, group: Group, x: float, y: float) -> str:
    shown = group.rejected[:MOST_DOTS]
    parts = []
    for index, evaluation in enumerate(shown):
        row, column = divmod(index, DOTS_A_ROW)
        place = _at(column * DOT, row * DOT)
        parts.append(svg.group([_mark(evaluation)], _tooltip(facts, evaluation), transform=place))
    if len(group.rejected) > len(shown):
        more = f"and {len(group.rejected) - len(shown):,} more"
        parts.append(svg.text(0, -(-len(shown) // DOTS_A_ROW) * DOT + 4, more, "soft small"))
    return svg.group(parts, transform=_at(x, y), opacity=0.75)


def _tooltip(facts: Facts, evaluation: Evaluation) -> str:
    text = f"{evaluation.eval_id}: {facts.title(evaluation)}\n{reasons.describe_fate(evaluation)}"
    reason = reasons.first_reason(evaluation)
    return text if reason in text else f"{text}: {reason}"


def _mark(evaluation: Evaluation) -> str:
    if evaluation.status in ("pending", "running"):
        return _PENDING
    return _CROSS if evaluation.status == "failed" else _RING


def _disc(class_: str) -> str:
    return svg.tag("circle", class_=class_, r=6.0)


def _at(x: float, y: float) -> str:
    return f"translate({svg.number(x)} {svg.number(y)})"
