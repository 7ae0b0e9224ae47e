"""What a notebook shows of a run: columns that are a table, pictures that are SVG.

Columns are a plain `dict` of lists, which is what `pandas.DataFrame(...)` and
`polars.DataFrame(...)` take. Everything that comes out as HTML is escaped; pictures are put in as
images, where neither their styles nor anything in them reach the page.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treewright.kernel.storage import atomic

MOST_ROWS_SHOWN = 50
_LONGEST_CELL = 200


class Columns(dict[str, list[Any]]):
    """Names of columns and their values, all of one length."""

    @classmethod
    def of(cls, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Columns:
        return cls({name: [row[i] for row in rows] for i, name in enumerate(names)})

    @property
    def height(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.values()), []))

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dict a row."""
        for values in zip(*self.values(), strict=True):
            yield dict(zip(self, values, strict=True))

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{_cell(name)}</th>" for name in self)
        shown = [row for row, _ in zip(self.rows(), range(MOST_ROWS_SHOWN), strict=False)]
        body = "".join(
            f"<tr>{''.join(f'<td>{_cell(value)}</td>' for value in row.values())}</tr>"
            for row in shown
        )
        left = self.height - len(shown)
        more = f"<p>{left:,} more rows</p>" if left else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG document that shows itself."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Writes it to a file."""
        atomic.write_bytes(Path(path), self.svg.encode())


def page(title: str, facts: Mapping[str, Any], *pictures: Picture) -> str:
    """A run as HTML: its name, a few facts, pictures."""
    listed = "".join(f"<tr><th>{_cell(k)}</th><td>{_cell(v)}</td></tr>" for k, v in facts.items())
    images = "".join(
        f'<img alt="" src="data:image/svg+xml;base64,{_encoded(picture)}"/>' for picture in pictures
    )
    return f"<div><strong>{_cell(title)}</strong><table>{listed}</table>{images}</div>"


def save_page(path: Path, title: str, body: str) -> None:
    """Writes HTML that was made here to a file that opens by itself."""
    head = f'<!doctype html><meta charset="utf-8"><title>{_cell(title)}</title>\n'
    atomic.write_bytes(path, f"{head}{body}\n".encode())


def _encoded(picture: Picture) -> str:
    return base64.b64encode(picture.svg.encode()).decode()


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    short = text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"
    return html.escape(short)
