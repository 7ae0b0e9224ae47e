"""Tables and pictures of a run for notebooks.

`Columns` is a `dict` of lists, which `pandas.DataFrame(...)` and `polars.DataFrame(...)` accept.
All HTML is escaped. Pictures are embedded as images, so that their styles do not affect the page.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treewright.kernel.storage import atomic

MAX_ROWS_SHOWN = 50
_MAX_CELL = 200


class Columns(dict[str, list[Any]]):
    """Named columns of equal length."""

    @classmethod
    def of(cls, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Columns:
        """Return the columns of rows whose values are in the order of the names."""
        return cls({name: [row[i] for row in rows] for i, name in enumerate(names)})

    @property
    def height(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.values()), []))

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a dict for each row."""
        for values in zip(*self.values(), strict=True):
            yield dict(zip(self, values, strict=True))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{_cell(name)}</th>" for name in self)
        shown = [row for row, _ in zip(self.rows(), range(MAX_ROWS_SHOWN), strict=False)]
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row.values())}</tr>"
            for row in shown
        )
        left = self.height - len(shown)
        more = f"<p>{left:,} more rows</p>" if left else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG document that a notebook displays."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the picture to a file."""
        atomic.write_bytes(Path(path), self.svg.encode())


def page(title: str, facts: Mapping[str, Any], *pictures: Picture) -> str:
    """Return HTML with a title, a table of facts and pictures."""
    listed = "".join(f"<tr><th>{_cell(k)}</th><td>{_cell(v)}</td></tr>" for k, v in facts.items())
    images = ""
    for picture in pictures:
        encoded = base64.b64encode(picture.svg.encode()).decode()
        images += f'<img alt="" src="data:image/svg+xml;base64,{encoded}"/>'
    return f"<div><strong>{_cell(title)}</strong><table>{listed}</table>{images}</div>"


def save_page(path: Path, title: str, body: str) -> None:
    """Write HTML of this module to a complete file."""
    head = f'<!doctype html><meta charset="utf-8"><title>{_cell(title)}</title>\n'
    atomic.write_bytes(path, f"{head}{body}\n".encode())


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    short = text if len(text) <= _MAX_CELL else f"{text[: _MAX_CELL - 1]}…"
    return html.escape(short)
