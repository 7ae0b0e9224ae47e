"""The results CSV of a sweep: one row for each config, and every way in which it can be wrong.

Nothing is repaired. A row that is missing, doubled, not `ok`, or has a metric that is not a finite
number becomes a problem with a stable code, and the comparison refuses to promote on it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from treewright.kernel.storage import untrusted
from treewright.tree.records.model import UNREADABLE_RESULTS

ProblemCode = Literal[
    "missing_column",
    "duplicate_column",
    "bad_config_id",
    "duplicate_config_id",
    "incomplete_rows",
    "non_finite_metric",
    "non_numeric_metric",
    "out_of_range",
    "unreadable_results",
]

SIDE_COLUMN = "treewright_side"
REPEAT_COLUMN = "treewright_repeat"
Side = Literal["candidate", "parent"]
_EXAMPLES_PER_CODE = 5
_LONGEST_FIELD = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one sweep in a file with several; a file with one sweep has no other rows."""

    side: Side = "candidate"
    repeat: int = 1


FIRST = Part()


@dataclass(slots=True)
class Problems:
    """Count the occurrences of a code and keep the first few as examples."""

    counts: dict[ProblemCode, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    def add(self, code: ProblemCode, detail: str) -> None:
        self.counts[code] = self.counts.get(code, 0) + 1
        if self.counts[code] <= _EXAMPLES_PER_CODE:
            self.examples.append(f"{code}: {detail}")


@dataclass(slots=True)
class Results:
    """The values of sound rows as `values[metric][config_id]`, and the problems of the others."""

    values: dict[str, dict[int, float]]
    sound_ids: set[int]
    all_ids: set[int]
    problems: Problems


def read_results(
    path: Path, metrics: Sequence[str], wanted: Callable[[int], bool] = lambda _: True
) -> Results:
    """Read the rows with a wanted config_id; other rows are not checked."""
    try:
        data = untrusted.read(path, untrusted.LARGEST_RESULTS)
    except FileNotFoundError:
        data = None
    except OSError as error:
        results = Results({name: {} for name in metrics}, set(), set(), Problems())
        results.problems.add(UNREADABLE_RESULTS, f"{path}: {error.strerror or error}")
        return results
    return parse_results(data, metrics, wanted)


def parse_results(
    data: bytes | None,
    metrics: Sequence[str],
    wanted: Callable[[int], bool] = lambda _: True,
    part: Part = FIRST,
) -> Results:
    """Read the rows from the bytes of a file; None if there is no file."""
    results = Results({name: {} for name in metrics}, set(), set(), Problems())
    if data is None:
        results.problems.add(UNREADABLE_RESULTS, "the sweep wrote no results CSV")
        return results
    try:
        text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="")
        _read_rows(text, metrics, wanted, results, part)
    except (UnicodeDecodeError, csv.Error) as error:
        results.problems.add(UNREADABLE_RESULTS, str(error))
    return results


def rows_of(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """Yield the rows of a CSV reader; a row that cannot be read is named by its number.

    Raises:
        csv.Error: a row cannot be read; the message says which one.
    """
    number = 0
    while True:
        number += 1
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            said = str(error)
            if "field limit" in said:
                said = f"a field has more than {_LONGEST_FIELD:,} characters"
            raise csv.Error(f"row {number}: {said}") from None


def _read_rows(
    file, metrics: Sequence[str], wanted: Callable[[int], bool], out: Results, part: Part
) -> None:
    csv.field_size_limit(_LONGEST_FIELD)
    reader = csv.reader(file)
    rows = rows_of(reader)
    header = [name.strip() for name in next(rows, [])]
    missing = [name for name in ("config_id", "status", *metrics) if name not in header]
    for name in missing:
        out.problems.add("missing_column", name)
    doubled_columns = [name for name in ("config_id", "status", *metrics) if header.count(name) > 1]
    for name in doubled_columns:
        out.problems.add("duplicate_column", name)
    if missing or doubled_columns:
        return
    id_at, status_at = header.index("config_id"), header.index("status")
    columns = [(name, header.index(name)) for name in metrics]
    doubled: set[int] = set()
    of_part = _of_part(header, part)
    for row in rows:
        if not row or not of_part(row):
            continue
        config_id = _config_id(row, id_at)
        if config_id is None:
            out.problems.add("bad_config_id", f"line {reader.line_num}")
            continue
        if not wanted(config_id):
            continue
        if config_id in out.all_ids:
            doubled.add(config_id)
            out.problems.add("duplicate_config_id", f"config_id {config_id}")
            continue
        out.all_ids.add(config_id)
        status = row[status_at].strip() if status_at < len(row) else ""
        if status != "ok":
            out.problems.add("incomplete_rows", f"config_id {config_id} has status {status!r}")
            continue
        numbers = [_number(row, at, name, config_id, out.problems) for name, at in columns]
        if all(number is not None for number in numbers):
            out.sound_ids.add(config_id)
            for (name, _), number in zip(columns, numbers, strict=True):
                assert number is not None
                out.values[name][config_id] = number
    for config_id in doubled & out.sound_ids:
        out.sound_ids.discard(config_id)
        for name in metrics:
            del out.values[name][config_id]


def _of_part(header: list[str], part: Part) -> Callable[[list[str]], bool]:
    if SIDE_COLUMN not in header or REPEAT_COLUMN not in header:
        return lambda _: True
    side_at, repeat_at = header.index(SIDE_COLUMN), header.index(REPEAT_COLUMN)
    last, wanted = max(side_at, repeat_at), (part.side, str(part.repeat))
    return lambda row: last < len(row) and (row[side_at], row[repeat_at]) == wanted


def _config_id(row: list[str], at: int) -> int | None:
    try:
        text = row[at]
        config_id = int(text)
    except (ValueError, IndexError):
        return None
    return config_id if config_id >= 0 and _is_plain(text) else None


def _number(row: list[str], at: int, name: str, config_id: int, problems: Problems) -> float | None:
    text = row[at].strip() if at < len(row) else ""
    try:
        number = float(text)
        if not _is_plain(text):
            raise ValueError
    except ValueError:
        shown = text[:40]
        problems.add("non_numeric_metric", f"{name} of config_id {config_id} is {shown!r}")
        return None
    if not math.isfinite(number):
        problems.add("non_finite_metric", f"{name} of config_id {config_id} is {text}")
        return None
    return number


def _is_plain(text: str) -> bool:
    """Return whether the text is a plain number. Python would also read 1_0 and digits of any
    script."""
    return text.isascii() and "_" not in text


class NotOneTable(Exception):
    """The files of several sweeps cannot be joined into one table."""


def merge_sweeps(parts: Sequence[tuple[Part, bytes]]) -> bytes:
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
            for name in (SIDE_COLUMN, REPEAT_COLUMN):
                if name in (column.strip() for column in header):
                    raise NotOneTable(f"{name} is a column that only treewright writes")
            writer.writerow([SIDE_COLUMN, REPEAT_COLUMN, *header])
        elif header != columns:
            raise NotOneTable(f"repeat {part.repeat} has other columns than the first")
        writer.writerows([part.side, part.repeat, *row] for row in rows if row)
    return text.getvalue().encode()
