"""Facts about the user's sweep for the code of cheats: its rows, better and worse rows, paths."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treewright.kernel.errors import TreewrightError
from treewright.tree.config import Config, MetricConfig

Table = dict[str, dict[str, float]]
"""Config id -> metric -> value."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where cheats leave traces, all below the temporary directory."""

    trial: Path
    outside: Path
    artifacts: Path
    branch: Path
    commit: str
    port: int
    token: str


def parse_rows(data: bytes, config: Config, limit: int | None) -> Table:
    """Return the rows of the root's results.

    Raises:
        TreewrightError: the results have no usable row.
    """
    found: Table = {}
    for row in csv.DictReader(io.StringIO(data.decode("utf-8-sig", "replace"))):
        name = (row.get("config_id") or "").strip()
        if name.isdecimal() and (limit is None or int(name) < limit):
            found[name] = {m.name: float(row[m.name]) for m in config.metrics}
    if not found:
        raise TreewrightError("the sweep of the root commit gives no row to start from")
    return found


def shifted(table: Table, config: Config, how: int) -> Table:
    """Return the rows with better (`how` = 1) or worse (-1) ranked metrics, within bounds."""
    return {
        name: {m.name: _shifted(m, row[m.name], place, how) for m in config.metrics}
        for place, (name, row) in enumerate(table.items())
    }


def _shifted(metric: MetricConfig, value: float, place: int, how: int) -> float:
    if metric.constraint:
        return value
    sign = how if metric.direction == "maximize" else -how
    moved = value + sign * (0.4 * abs(value) + 0.25 + 0.001 * (place % 3))
    low = -math.inf if metric.min is None else metric.min
    high = math.inf if metric.max is None else metric.max
    return min(max(moved, low), high)


def collect_facts(
    table: Table, config: Config, limit: int | None, places: Places, scripts: list[str]
) -> dict[str, Any]:
    better, primary = shifted(table, config, 1), config.primary
    return {
        "columns": [metric.name for metric in config.metrics],
        "primary": primary.name,
        "sign": "" if primary.direction == "maximize" else "-",
        "best": next(iter(better.values()))[primary.name],
        "limit": limit if limit is not None else 1 + max(map(int, table)),
        "usual": table,
        "better": better,
        "worse": shifted(table, config, -1),
        "results_csv": config.sweep.results_csv or "results.csv",
        "scripts": [Path(script).name for script in scripts],
        "trial": str(places.trial),
        "outside": str(places.outside),
        "artifacts": str(places.artifacts),
        "branch": str(places.branch),
        "commit": places.commit,
        "port": places.port,
        "token": places.token,
    }
