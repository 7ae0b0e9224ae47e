"""Which metrics a sweep writes, judged by a results CSV or by the sweep's own source."""

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
    name: str

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        words = re.split(r"[^a-z0-9]+", self.name.lower())
        return "maximize" if _MORE_IS_BETTER & set(words) else "minimize"


def columns_of_csv(path: Path) -> list[Column]:
    """The columns that hold finite numbers. Whole numbers throughout are more often a
    setting of the config (a size, a horizon) than a measurement, so those come only if
    there is nothing else."""
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
    """From a list of names, or a header line, that has `config_id` and `status` in it."""
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
