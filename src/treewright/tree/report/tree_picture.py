"""A picture of the search tree: promoted nodes, the best path, and rejected candidates in pale."""

from __future__ import annotations

from collections.abc import Iterator

from treewright.kernel.text import numbers, svg
from treewright.tree.records.model import Evaluation, Node
from treewright.tree.report import reasons
from treewright.tree.report.run_facts import Facts
from treewright.tree.report.tree_layout import (
    COLUMN,
    DOT,
    DOTS_A_ROW,
    MOST_DOTS,
    Group,
    Layout,
    lay_out,
)

_LEFT = 28.0
_TOP = 64.0
_LABEL_CHARACTERS = 40
_SHORT_LABEL = 28


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


_RING = svg.tag("circle", class_="ring", r=3.6)
_CROSS = svg.tag("path", class_="cross", d="M-3 -3L3 3M-3 3L3 -3")
_PENDING = svg.tag("rect", class_="pale", x=-3.0, y=-3.0, width=6.0, height=6.0)


def _at(x: float, y: float) -> str:
    return f"translate({svg.number(x)} {svg.number(y)})"
