"""The pictures of a proof run: root value, growth of the graph, outcomes, interventions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from treewright.kernel.text import svg
from treewright.kernel.text.charts import Bar, Series, bar_chart, line_chart
from treewright.kernel.text.svg import ticks
from treewright.proving import layout
from treewright.proving.records import Intervention, Iteration
from treewright.proving.report.facts import IDLE_REASONS, GoalFacts, RunFacts

MOST_GOALS = 24
"""The most goals with pictures; with more, the directory would become unreadable."""


def pictures(facts: RunFacts) -> dict[str, str]:
    """Return SVG documents by file name."""
    made: dict[str, str] = {}
    for goal in facts.goals[:MOST_GOALS]:
        if goal.iterations:
            made[layout.root_value_plot(goal.number)] = root_value(goal)
            made[layout.growth_plot(goal.number)] = growth(goal)
    if facts.outcomes:
        made[layout.OUTCOMES_PLOT] = outcomes(facts)
    if facts.agents:
        made[layout.AGENTS_PLOT] = agents(facts)
    if any(turn.interventions for turn in facts.iterations):
        made[layout.INTERVENTIONS_PLOT] = timeline(facts)
    return made


def root_value(goal: GoalFacts) -> str:
    """Draw the provability of the root, with a vertical line at each intervention."""
    points = [(float(n), turn.root_value) for n, turn in enumerate(goal.iterations, 1)]
    marks = [float(n) for n, turn in enumerate(goal.iterations, 1) if turn.interventions]
    return line_chart(
        f"Provability of the root, {goal.name}",
        [Series(f"root value of {goal.name}", points)],
        "iteration",
        "estimated provability",
        y_range=(0.0, 1.0),
        marks=marks if len(marks) <= 60 else (),
    )


def growth(goal: GoalFacts) -> str:
    """Draw the sizes of the graph over the iterations."""

    def series(name: str, style: int) -> Series:
        points = [
            (float(n), float(getattr(turn.counters, name)))
            for n, turn in enumerate(goal.iterations, 1)
        ]
        return Series(name, points, style, steps=True)

    names = ("nodes", "edges", "solved", "dead")
    lines = [series(name, style) for style, name in enumerate(names)]
    return line_chart(f"Growth of the tree, {goal.name}", lines, "iteration", "in the tree")


def outcomes(facts: RunFacts) -> str:
    """Draw how often each outcome of a tactic occurred."""
    total = facts.outcomes.total()
    bars = [
        Bar(kind, [count], f"{count:,} ({100 * count / total:.0f} %)")
        for kind, count in sorted(facts.outcomes.items(), key=lambda item: (-item[1], item[0]))
    ]
    return bar_chart(f"Attempts by outcome, run {facts.record.run_id}", "attempts by outcome", bars)


def agents(facts: RunFacts) -> str:
    """Draw the iterations of each agent: with growth, without, and those in which it was idle."""
    counts = {agent: Counter[str]() for agent in facts.agents}
    for turn in facts.iterations:
        if turn.agent is not None:
            counts[turn.agent][_use(turn)] += 1
    names = ("grew the tree", "did not", "kept from working")
    total = len(facts.iterations)
    bars = [
        Bar(
            f"agent {agent} ({facts.agents[agent]})",
            [found[name] for name in names],
            f"{found.total():,} ({100 * found.total() / total:.0f} %)",
        )
        for agent, found in counts.items()
    ]
    return bar_chart(f"Turns by agent, run {facts.record.run_id}", "turns by agent", bars, names)


def _use(turn: Iteration) -> str:
    if turn.reason in IDLE_REASONS:
        return "kept from working"
    return "grew the tree" if any(a.edge is not None for a in turn.attempts) else "did not"


_WIDTH = 900.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 120.0, 28.0, 58.0, 40.0
_ROW = 20.0
_MOST_ROWS = 60
_KINDS = {"block": 1, "delay": 3, "reroute": 2, "unblock": 0}

_Mark = tuple[int, Intervention]


def timeline(facts: RunFacts) -> str:
    """Draw the interventions, one row for each agent and node; the first rows if there are many."""
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
    """Return the interventions by agent, then by node, then those on all."""
    agents: dict[int, list[_Mark]] = {}
    nodes: dict[tuple[int, int], list[_Mark]] = {}
    general: list[_Mark] = []
    for turn in facts.iterations:
        for event in turn.interventions:
            mark = (turn.iteration, event)
            if event.agent is not None:
                agents.setdefault(event.agent, []).append(mark)
            elif event.node is not None:
                nodes.setdefault((turn.goal, event.node), []).append(mark)
            else:
                general.append(mark)
    rows = {f"agent {agent}": marks for agent, marks in sorted(agents.items())}
    rows |= {f"goal {g} node {n}": marks for (g, n), marks in sorted(nodes.items())}
    return rows | ({"all agents": general} if general else {})


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
