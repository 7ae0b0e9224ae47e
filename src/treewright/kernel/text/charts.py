"""Charts as SVG: lines in a frame with axes, and horizontal bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from treewright.kernel.text import svg
from treewright.kernel.text.svg import ticks

WIDTH, HEIGHT = 720.0, 300.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 24.0, 56.0, 44.0
_MOST_POINTS = 1200
_CHARACTER = 6.4

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """The points of a line. `style` 0 to 4 is a colour and a dash pattern; `steps` holds values."""

    label: str
    points: Sequence[Point]
    style: int = 0
    steps: bool = False


def label(tick: float) -> str:
    """Return the value of a tick as short text."""
    return f"{tick:.6g}".replace("-", "−")


class Frame:
    """A frame with axes. It maps values to positions; the axes cover at least the given ranges."""

    def __init__(
        self,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        x_label: str,
        y_label: str,
        *,
        whole_x: bool = True,
    ) -> None:
        self._x_ticks = ticks(*x_range, 8)
        if whole_x:
            self._x_ticks = [tick for tick in self._x_ticks if tick == round(tick)]
        self._y_ticks = ticks(*y_range, 5)
        self._x_range = (self._x_ticks[0], max(self._x_ticks[-1], x_range[1]))
        self._x_label, self._y_label = x_label, y_label

    def x(self, value: float) -> float:
        """Return the horizontal position of a value."""
        low, high = self._x_range
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * (value - low) / ((high - low) or 1.0)

    def y(self, value: float) -> float:
        """Return the vertical position of a value."""
        low, high = self._y_ticks[0], self._y_ticks[-1]
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * (value - low) / (high - low)

    def axes(self) -> Iterator[str]:
        """Draw the axes with their ticks and labels."""
        for tick in self._y_ticks:
            y = self.y(tick)
            yield svg.tag("path", class_="axis", d=f"M{_LEFT:g} {svg.number(y)}H{WIDTH - _RIGHT:g}")
            yield svg.text(_LEFT - 8, y + 4, label(tick), "soft small end")
        for tick in self._x_ticks:
            yield svg.text(self.x(tick), HEIGHT - _BOTTOM + 18, label(tick), "soft small middle")
        middle = (WIDTH + _LEFT - _RIGHT) / 2
        yield svg.text(middle, HEIGHT - 8, self._x_label, "soft small middle")
        yield svg.text(_LEFT - 40, 20, self._y_label, "strong")

    def line(self, series: Series) -> str:
        """Draw a line; '' without points."""
        places = [(self.x(x), self.y(y)) for x, y in thin(series.points)]
        if not places:
            return ""
        path = f"M{svg.number(places[0][0])} {svg.number(places[0][1])}"
        for x, y in places[1:]:
            path += f"H{svg.number(x)}V{svg.number(y)}" if series.steps else (
                f"L{svg.number(x)} {svg.number(y)}"
            )  # fmt: skip
        return svg.tag("path", class_=f"line s{series.style}", d=path)

    def upright(self, x: float, class_: str) -> str:
        """Draw a thin vertical line over the whole height."""
        top, bottom = svg.number(_TOP), svg.number(HEIGHT - _BOTTOM)
        return svg.tag("path", class_=class_, d=f"M{svg.number(self.x(x))} {top}V{bottom}")

    def whisker(self, x: float, low: float, high: float, class_: str) -> str:
        """Draw an interval with caps."""
        at, caps = self.x(x), (self.y(low), self.y(high))
        path = f"M{svg.number(at)} {svg.number(caps[0])}V{svg.number(caps[1])}"
        path += "".join(f"M{svg.number(at - 4)} {svg.number(cap)}h8" for cap in caps)
        return svg.tag("path", class_=class_, d=path)

    def dot(self, x: float, y: float, tooltip: str) -> str:
        """Draw a point with a tooltip."""
        circle = svg.tag("circle", class_="good", cx=self.x(x), cy=self.y(y), r=4.5)
        return svg.group([circle], tooltip)


def line_chart(
    title: str,
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    *,
    y_range: tuple[float, float] | None = None,
    marks: Sequence[float] = (),
    whole_x: bool = True,
) -> str:
    """Return a line chart as an SVG document. `marks` are positions on the x axis to mark."""
    points = [point for one in series for point in one.points]
    xs, ys = [x for x, _ in points] or [0.0], [y for _, y in points] or [0.0]
    y_range = y_range or (min(0.0, *ys), max(ys))
    frame = Frame((min(xs), max(xs)), y_range, x_label, y_label, whole_x=whole_x)
    parts = [
        *frame.axes(),
        *(frame.upright(mark, "wait") for mark in marks),
        *(frame.line(one) for one in series),
        *legend([(one.label, one.style) for one in series]),
    ]
    return svg.document(WIDTH, HEIGHT, title, parts)


def legend(entries: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Draw the name and the style of each line, side by side."""
    x = _LEFT
    for text, style in entries:
        shown = svg.clip(text, 32)
        mark = svg.tag("path", class_=f"line s{style}", d="M0 0H22")
        place = f"translate({svg.number(x)} 38)"
        yield svg.group([mark, svg.text(28, 4, shown, "soft small")], transform=place)
        x += 46 + _CHARACTER * len(shown)


def thin(points: Sequence[Point], most: int = _MOST_POINTS) -> list[Point]:
    """Return fewer points that look the same: first, lowest, highest and last of each stretch."""
    if len(points) <= most:
        return list(points)
    size = -(-4 * len(points) // most)
    kept: list[Point] = []
    for start in range(0, len(points), size):
        stretch = range(start, min(start + size, len(points)))
        low = min(stretch, key=lambda place: points[place][1])
        high = max(stretch, key=lambda place: points[place][1])
        kept += [points[place] for place in sorted({stretch[0], low, high, stretch[-1]})]
    return kept


_BAR_WIDTH = 720.0
_BAR_LEFT, _BAR_RIGHT, _BAR_TOP, _BAR_BOTTOM = 170.0, 90.0, 58.0, 16.0
_BAR_ROW, _BAR = 22.0, 13.0
_BAR_CHARACTER = 6.4


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar made of `parts`, one for each entry of the legend; their lengths are their numbers."""

    label: str
    parts: Sequence[float]
    note: str


def bar_chart(title: str, heading: str, bars: Sequence[Bar], parts: Sequence[str] = ()) -> str:
    """Return horizontal bars as an SVG document. `parts` name the colours if there are several."""
    longest = max((sum(bar.parts) for bar in bars), default=0) or 1.0
    scale = (_BAR_WIDTH - _BAR_LEFT - _BAR_RIGHT) / longest
    height = _BAR_TOP + _BAR_ROW * len(bars) + _BAR_BOTTOM
    drawn = [svg.text(24, 20, heading, "strong"), *_bar_legend(parts)]
    for row, bar in enumerate(bars):
        drawn += _bar(bar, _BAR_TOP + row * _BAR_ROW, scale)
    return svg.document(_BAR_WIDTH, height, title, drawn)


def _bar(bar: Bar, top: float, scale: float) -> Iterator[str]:
    yield svg.text(_BAR_LEFT - 8, top + 11, svg.clip(bar.label, 24), "soft small end")
    x = _BAR_LEFT
    for colour, part in enumerate(bar.parts):
        if part > 0:
            yield svg.tag(
                "rect", class_=f"p{colour}", x=x, y=top, width=scale * part, height=_BAR, rx=1.5
            )
        x += scale * part
    yield svg.text(x + 6, top + 11, bar.note, "soft small")


def _bar_legend(parts: Sequence[str]) -> Iterator[str]:
    x = _BAR_LEFT
    for colour, name in enumerate(parts):
        square = svg.tag("rect", class_=f"p{colour}", y=-8.0, width=10.0, height=10.0, rx=1.5)
        place = f"translate({svg.number(x)} 40)"
        yield svg.group([square, svg.text(15, 1, name, "soft small")], transform=place)
        x += 34 + _BAR_CHARACTER * len(name)
