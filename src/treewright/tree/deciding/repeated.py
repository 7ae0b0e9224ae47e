"""Several sweeps in one results file: of a candidate, and of its parent between them.

The file is what one evaluation rests on, all of it: two columns in front of the sweep's own say
whose row it is and of which repeat. A plain file of one sweep is read as it always was.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from treewright.tree.deciding.results import REPEAT_COLUMN, SIDE_COLUMN, Part, rows_of


class NotOneTable(Exception):
    """The sweeps wrote files that cannot be put together."""


def merge(parts: Sequence[tuple[Part, bytes]]) -> bytes:
    """One CSV of all rows, in the order given; the columns must be the same everywhere."""
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
