"""The metrics that a sweep writes, read from a results CSV or from the sweep's source."""

from __future__ import annotations

import ast
import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

_CONTRACT = ("config_id", "status")
_ROWS_LOOKED_AT = 1000
# fmt: off
_MORE_IS_BETTER = frozenset({
    "acc", "accuracy", "auc", "bleu", "coverage", "f1", "fps", "hits", "map", "ndcg", "passed",
    "precision", "profit", "proved", "qps", "r2", "recall", "return", "reward", "rouge", "score",
    "sharpe", "solved", "speedup", "throughput", "wins",
})
# fmt: on


@dataclass(frozen=True, slots=True)
class Column:
    """A metric; the direction is guessed from its name."""

    name: str

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        words = re.split(r"[^a-z0-9]+", self.name.lower())
        return "maximize" if _MORE_IS_BETTER & set(words) else "minimize"


def columns_of_csv(path: Path) -> list[Column]:
    """Return the columns that hold finite numbers.

    A column of whole numbers is more often a setting of the config (a size, a horizon) than a
    measurement, so such columns are returned only if there are no others.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            header = [name.strip() for name in next(reader, [])]
            rows = list(islice(reader, _ROWS_LOOKED_AT))
    except (OSError, UnicodeDecodeError, csv.Error):
        return []
    measured, whole = [], []
    for at, name in enumerate(header):
        values = [row[at].strip() for row in rows if at < len(row) and row[at].strip()]
        if not name or name in _CONTRACT or not values or not all(map(_is_finite, values)):
            continue
        (whole if all(_is_whole(value) for value in values) else measured).append(Column(name))
    return measured or whole


def columns_of_script(source: str) -> list[Column]:
    """Return the columns of a list of names, or a header line, with `config_id` and `status`."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    for names in _name_lists(tree):
        if set(_CONTRACT) <= set(names):
            return [Column(name) for name in names if name and name not in _CONTRACT]
    return []


def _name_lists(tree: ast.AST) -> Iterator[list[str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield [name.strip() for name in node.value.strip().split(",")]
        elif isinstance(node, ast.List | ast.Tuple):
            values = [e.value for e in node.elts if isinstance(e, ast.Constant)]
            yield [value for value in values if isinstance(value, str)]


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _is_whole(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+", text) is not None
