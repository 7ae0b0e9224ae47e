"""A small SVG writer: escaped by construction, one palette for light and dark.

Colours are Okabe and Ito's, which people with any colour vision can tell apart, and
every meaning has a shape as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NARROWEST_RANGE = 1e-9
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
_FONT = "ui-sans-serif, system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"

_LIGHT = {
    "ink": "#1f2328", "soft": "#59636e", "faint": "#c4cad1", "paper": "#ffffff", "band": "#f3f5f7",
    "good": "#0072b2", "best": "#d55e00", "other": "#009e73", "warn": "#a8720b", "last": "#a9528a",
}  # fmt: skip
_DARK = {
    "ink": "#e6edf3", "soft": "#9198a1", "faint": "#454c55", "paper": "#0d1117", "band": "#161b22",
    "good": "#56b4e9", "best": "#f0883e", "other": "#2fc79a", "warn": "#e69f00", "last": "#cc79a7",
}  # fmt: skip
_SHAPES = f"""\
text {{ font-family: {_FONT}; font-size: 12px; }}
.small {{ font-size: 10.5px; }} .strong {{ font-weight: 600; }}
.end {{ text-anchor: end; }} .middle {{ text-anchor: middle; }}
.axis, .faint {{ stroke-width: 1; fill: none; }}
.edge {{ stroke-width: 1.4; fill: none; }}
.bestline {{ stroke-width: 2.6; fill: none; }}
.ring {{ stroke-width: 1.2; }}
.cross {{ stroke-width: 1.6; fill: none; }}
.dots {{ stroke-width: 4; stroke-linecap: round; stroke-opacity: 0.5; fill: none; }}
.line {{ stroke-width: 1.8; stroke-linejoin: round; fill: none; }}
.s1 {{ stroke-dasharray: 7 3; }} .s2 {{ stroke-dasharray: 2 3; }}
.s3 {{ stroke-dasharray: 9 3 2 3; }}
"""
# One rule a colour; written once for light and once for dark, in plain values, because
# not every program that shows SVG knows variables.
_FILLS = {
    "text": "ink", ".soft": "soft", ".paper": "paper", ".band": "band", ".good": "good",
    ".best": "best", ".ring": "paper", ".p0": "good", ".p1": "warn", ".p2": "other",
    ".p3": "last", ".p4": "soft", ".pale": "faint",
}  # fmt: skip
_STROKES = {
    ".axis": "faint", ".faint": "faint", ".edge": "soft", ".bestline": "best", ".ring": "soft",
    ".cross": "warn", ".dots": "soft", ".wait": "faint",
    ".s0": "good", ".s1": "warn", ".s2": "other", ".s3": "last", ".s4": "soft",
}  # fmt: skip


def _colours(palette: dict[str, str]) -> str:
    rules = [f"{name} {{ fill: {palette[colour]}; }}" for name, colour in _FILLS.items()]
    rules += [f"{name} {{ stroke: {palette[colour]}; }}" for name, colour in _STROKES.items()]
    return "\n".join(rules)


_STYLE = (
    f"{_SHAPES}{_colours(_LIGHT)}\n@media (prefers-color-scheme: dark) {{\n{_colours(_DARK)}\n}}\n"
)


def escape(text: str) -> str:
    """Text for element content or an attribute in double quotes; never ill-formed."""
    legal = text if text.isprintable() else _ILLEGAL.sub("\ufffd", text)
    return legal.translate(_ESCAPES)


def number(value: float) -> str:
    """At most two decimals, no trailing zeros: small files that are the same everywhere."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def tag(name: str, content: str = "", **attributes: str | float) -> str:
    """An element; `class_` and `stroke_width` become `class` and `stroke-width`."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
    )
    return f"<{name}{written}>{content}</{name}>" if content else f"<{name}{written}/>"


def text(x: float, y: float, content: str, class_: str = "") -> str:
    extra = {"class_": class_} if class_ else {}
    return tag("text", escape(content), x=x, y=y, **extra)


def group(parts: Iterable[str], tooltip: str = "", **attributes: str | float) -> str:
    """A `<g>`, with a tooltip if one is given."""
    title = tag("title", escape(tooltip)) if tooltip else ""
    return tag("g", title + "".join(parts), **attributes)


def document(width: float, height: float, title: str, parts: Iterable[str]) -> str:
    """A whole picture, one element a line."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(width)}" '
        f'height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n"
        f'<rect class="paper" width="100%" height="100%"/>\n{body}\n</svg>\n'
    )


def clip(content: str, characters: int) -> str:
    """The beginning of a text that must fit."""
    line = " ".join(content.split())
    return line if len(line) <= characters else line[: characters - 1].rstrip() + "…"


def _attribute(value: str | float) -> str:
    return escape(value) if isinstance(value, str) else number(value)


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten that cover [low, high], for an axis.

    A range too narrow for floating point to divide is widened.
    """
    if high - low <= _NARROWEST_RANGE * max(1.0, abs(low), abs(high)):
        high = low + max(1.0, abs(low))
    rough = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((m * power for m in (1, 2, 5) if m * power >= rough), 10 * power)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [index * step for index in range(first, last + 1)]
