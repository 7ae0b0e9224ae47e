"""When agents and nodes were blocked, delayed or sent elsewhere: a row each, iterations along."""

from __future__ import annotations

from collections.abc import Iterator

from treewright.kernel.text import svg
from treewright.kernel.text.svg import ticks
from treewright.proving.records import Intervention
from treewright.proving.report.facts import RunFacts

_WIDTH = 900.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 120.0, 28.0, 58.0, 40.0
_ROW = 20.0
_MOST_ROWS = 60
_KINDS = {"block": 1, "delay": 3, "reroute": 2, "unblock": 0}

_Mark = tuple[int, Intervention]


def timeline(facts: RunFacts) -> str:
    """An SVG document; of many rows the first ones, with a word about the rest."""
    rows = _rows(facts)
    shown = list(rows)[:_MOST_ROWS]
    height = _TOP + _ROW * len(shown) + _BOTTOM
    marks = [t for t in ticks(0, max(turn.iteration for turn in facts.iterations), 8) if t % 1 == 0]
    scale = (_WIDTH - _LEFT - _RIGHT) / marks[-1]
    parts = [svg.text(24, 20, "interventions", "strong"), *_legend()]
    if len(rows) > len(shown):
        more = f"and {len(rows) - len(shown)} more rows"
        parts.append(svg.text(_WIDTH - _RIGHT, 20, more, "soft small end"))
    bottom = height - _BOTTOM
    for tick in marks:
        x = _LEFT + scale * tick
        parts.append(
            svg.tag("path", class_="axis", d=f"M{svg.number(x)} {_TOP - 6:g}V{svg.number(bottom)}")
        )
        parts.append(svg.text(x, bottom + 18, f"{tick:g}", "soft small middle"))
    parts.append(svg.text(_WIDTH / 2, height - 6, "iteration", "soft small middle"))
    for row, name in enumerate(shown):
        y = _TOP + (row + 0.5) * _ROW
        parts.append(svg.text(_LEFT - 10, y + 4, name, "soft small end"))
        for iteration, event in rows[name]:
            parts.append(_mark(_LEFT + scale * iteration, y, iteration, event))
    return svg.document(_WIDTH, height, f"Interventions, run {facts.record.run_id}", parts)


def _rows(facts: RunFacts) -> dict[str, list[_Mark]]:
    """By whom it was done to, agents first."""
    agents: dict[int, list[_Mark]] = {}
    nodes: dict[tuple[int, int], list[_Mark]] = {}
    nobody: list[_Mark] = []
    for turn in facts.iterations:
        for event in turn.interventions:
            mark = (turn.iteration, event)
            if event.agent is not None:
                agents.setdefault(event.agent, []).append(mark)
            elif event.node is not None:
                nodes.setdefault((turn.goal, event.node), []).append(mark)
            else:
                nobody.append(mark)
    rows = {f"agent {agent}": marks for agent, marks in sorted(agents.items())}
    rows |= {f"goal {g} node {n}": marks for (g, n), marks in sorted(nodes.items())}
    return rows | ({"everybody": nobody} if nobody else {})


def _mark(x: float, y: float, iteration: int, event: Intervention) -> str:
    until = "" if event.until is None else f", until {event.until}"
    source = f" ({event.source})" if event.source else ""
    words = f"iteration {iteration}: {event.kind}{until}{source}"
    return svg.group(
        [_shape(event.kind)], words, transform=f"translate({svg.number(x)} {svg.number(y)})"
    )


def _shape(kind: str) -> str:
    colour = f"p{_KINDS.get(kind, 4)}"
    if kind == "block":
        return svg.tag("rect", class_=colour, x=-4.0, y=-6.0, width=8.0, height=12.0)
    if kind == "delay":
        return svg.tag("path", class_=colour, d="M-5 -6H5L0 0L5 6H-5L0 0Z")
    if kind == "reroute":
        return svg.tag("path", class_=colour, d="M-5 -6L6 0L-5 6Z")
    return svg.tag("circle", class_=colour, r=4.5)


def _legend() -> Iterator[str]:
    x = _LEFT
    for kind in _KINDS:
        place = f"translate({svg.number(x)} 38)"
        yield svg.group([_shape(kind), svg.text(12, 4, kind, "soft small")], transform=place)
        x += 90
