"""Results files with several sweeps: those of a candidate, and those of its parent between them.

Such a file holds everything that one evaluation is scored by. Two columns before the sweep's own
name the owner of the row and the number of the repeat. A file of one sweep has no such columns.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from treewright.tree.deciding.results import REPEAT_COLUMN, SIDE_COLUMN, Part, rows_of


class NotOneTable(Exception):
    """The files of several sweeps cannot be joined into one table."""


def merge(parts: Sequence[tuple[Part, bytes]]) -> bytes:
    """Return one CSV of all rows in the given order; all files must have the same columns."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns: list[str] | None = None
    for part, data in parts:
        try:
            header, *rows = rows_of(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
        except (UnicodeDecodeError, csv.Error, ValueError) as error:
            raise NotOneTable(f"repeat {part.repeat} is not a CSV table: {error}") from None
        if columns is None:
            columns = header
            _check_names(header)
            writer.writerow([SIDE_COLUMN, REPEAT_COLUMN, *header])
        elif header != columns:
            raise NotOneTable(f"repeat {part.repeat} has other columns than the first")
        writer.writerows([part.side, part.repeat, *row] for row in rows if row)
    return text.getvalue().encode()


def _check_names(header: list[str]) -> None:
    for name in (SIDE_COLUMN, REPEAT_COLUMN):
        if name in (column.strip() for column in header):
            raise NotOneTable(f"{name} is a column that only treewright writes")
