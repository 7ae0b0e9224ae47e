"""Horizontal bars, each made of coloured parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from treewright.kernel.text import svg

_WIDTH = 720.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 170.0, 90.0, 58.0, 16.0
_ROW, _BAR = 22.0, 13.0
_CHARACTER = 6.4


@dataclass(frozen=True, slots=True)
class Bar:
    """`parts` are as long as their numbers; one for each entry of the legend."""

    label: str
    parts: Sequence[float]
    note: str


def bar_chart(title: str, heading: str, bars: Sequence[Bar], parts: Sequence[str] = ()) -> str:
    """`parts` name what the colours mean, where there is more than one."""
    longest = max((sum(bar.parts) for bar in bars), default=0) or 1.0
    scale = (_WIDTH - _LEFT - _RIGHT) / longest
    height = _TOP + _ROW * len(bars) + _BOTTOM
    drawn = [svg.text(24, 20, heading, "strong"), *_legend(parts)]
    for row, bar in enumerate(bars):
        drawn += _bar(bar, _TOP + row * _ROW, scale)
    return svg.document(_WIDTH, height, title, drawn)


def _bar(bar: Bar, top: float, scale: float) -> Iterator[str]:
    yield svg.text(_LEFT - 8, top + 11, svg.clip(bar.label, 24), "soft small end")
    x = _LEFT
    for colour, part in enumerate(bar.parts):
        if part > 0:
            yield svg.tag(
                "rect", class_=f"p{colour}", x=x, y=top, width=scale * part, height=_BAR, rx=1.5
            )
        x += scale * part
    yield svg.text(x + 6, top + 11, bar.note, "soft small")


def _legend(parts: Sequence[str]) -> Iterator[str]:
    x = _LEFT
    for colour, name in enumerate(parts):
        square = svg.tag("rect", class_=f"p{colour}", y=-8.0, width=10.0, height=10.0, rx=1.5)
        place = f"translate({svg.number(x)} 40)"
        yield svg.group([square, svg.text(15, 1, name, "soft small")], transform=place)
        x += 34 + _CHARACTER * len(name)
