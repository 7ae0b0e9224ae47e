"""The pictures of an experiment: solve rates by group, and responses to doses."""

from __future__ import annotations

from collections.abc import Sequence

from treewright.cellview.experiment import layout
from treewright.cellview.experiment.comparisons import Curve, Group
from treewright.cellview.measures import Level
from treewright.kernel.text import svg
from treewright.kernel.text.charts import HEIGHT, WIDTH, Frame, Series, label, legend
from treewright.kernel.text.svg import ticks
from treewright.proving.measures.intervals import Estimate

_LEFT, _RIGHT, _TOP, _ROW = 270.0, 60.0, 40.0, 24.0


def pictures(name: str, groups: Sequence[Group], curves: Sequence[Curve]) -> dict[str, str]:
    """Return SVG documents by file name."""
    made: dict[str, str] = {}
    if groups:
        made[layout.SOLVE_RATES_PLOT] = solve_rates(name, groups)
    for number, curve in enumerate(curves, 1):
        made[layout.solved_plot(number)] = _dose(name, curve, "solve rate", solved=True)
        made[layout.steps_plot(number)] = _dose(name, curve, "mean steps", solved=False)
    return made


def solve_rates(name: str, groups: Sequence[Group]) -> str:
    """Draw a row for each group: the rate and its interval."""
    width, height = WIDTH, _TOP + _ROW * len(groups) + 44
    scale = width - _LEFT - _RIGHT
    bottom = height - 34
    parts = [svg.text(24, 20, "solve rate", "strong")]
    for tick in ticks(0.0, 1.0, 5):
        x = _LEFT + scale * tick
        parts.append(
            svg.tag("path", class_="axis", d=f"M{svg.number(x)} {_TOP - 6:g}V{svg.number(bottom)}")
        )
        parts.append(svg.text(x, bottom + 18, f"{100 * tick:.0f} %", "soft small middle"))
    for row, group in enumerate(groups):
        y = _TOP + (row + 0.5) * _ROW
        found = group.solved()
        words = f"{group.setup}: {group.arm.name}"
        parts.append(svg.text(_LEFT - 12, y + 4, svg.clip(words, 42), "soft small end"))
        if found is not None:
            parts.append(_interval(found, y, scale, words))
    return svg.document(width, height, f"Solve rates, experiment {name}", parts)


def _interval(found: Estimate, y: float, scale: float, words: str) -> str:
    low, high = (_LEFT + scale * (bound or 0.0) for bound in (found.low, found.high))
    path = f"M{svg.number(low)} {svg.number(y)}H{svg.number(high)}"
    path += "".join(f"M{svg.number(x)} {svg.number(y - 4)}v8" for x in (low, high))
    line = svg.tag("path", class_="edge", d=path)
    dot = svg.tag("circle", class_="good", cx=_LEFT + scale * found.value, cy=y, r=4.5)
    return svg.group([line, dot], f"{words}\n{100 * found.value:.0f} % of {found.count}")


def _dose(name: str, curve: Curve, heading: str, *, solved: bool) -> str:
    def of(level: Level) -> Estimate | None:
        return level.solved if solved else level.steps

    levels = [(level.dose, found) for level in curve.found.levels if (found := of(level))]
    highest = max((found.high or found.value for _, found in levels), default=1.0)
    frame = Frame(
        (0.0, max(dose for dose, _ in levels)),
        (0.0, 1.0 if solved else highest),
        "block fraction",
        heading,
        whole_x=False,
    )
    words = f"{curve.label}, {curve.agents} agents"
    parts = [
        *frame.axes(),
        *(
            frame.whisker(dose, found.low, found.high, "edge")
            for dose, found in levels
            if found.low is not None and found.high is not None
        ),
        frame.line(Series(words, [(dose, found.value) for dose, found in levels])),
        *(
            frame.dot(dose, found.value, f"{label(dose)}: {label(found.value)} of {found.count}")
            for dose, found in levels
        ),
        *legend([(words, 0)]),
    ]
    return svg.document(WIDTH, HEIGHT, f"{heading} by block fraction, experiment {name}", parts)
