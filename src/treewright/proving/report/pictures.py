"""The pictures of a proof run: what the root was worth, how the tree grew, who did what."""

from __future__ import annotations

from collections import Counter

from treewright.proving import layout
from treewright.proving.records import Iteration
from treewright.proving.report.bars import Bar, bar_chart
from treewright.proving.report.chart import Series, line_chart
from treewright.proving.report.facts import KEPT, GoalFacts, RunFacts
from treewright.proving.report.timeline import timeline

MOST_GOALS = 24
"""So many goals get pictures of their own; beyond that the directory would be unreadable."""


def pictures(facts: RunFacts) -> dict[str, str]:
    """SVG documents by file name."""
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
    """Provability of the root; upright lines where an intervention began."""
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
    total = facts.outcomes.total()
    bars = [
        Bar(kind, [count], f"{count:,} ({100 * count / total:.0f} %)")
        for kind, count in sorted(facts.outcomes.items(), key=lambda item: (-item[1], item[0]))
    ]
    return bar_chart(f"Attempts by outcome, run {facts.record.run_id}", "attempts by outcome", bars)


def agents(facts: RunFacts) -> str:
    """Turns of each agent: in which it worked, went without effect, or was kept from working."""
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
    if turn.reason in KEPT:
        return "kept from working"
    return "grew the tree" if any(a.edge is not None for a in turn.attempts) else "did not"
