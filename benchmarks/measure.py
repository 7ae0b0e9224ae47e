"""Timing things fairly on a noisy machine.

The contestants take turns, so that a slow moment hits all of them, and the median of
the turns is compared. Absolute times say something of this machine only; ratios carry.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table. `ratio` is to the row named `against`; `target` is its limit."""

    what: str
    value: float
    unit: str
    against: str = ""
    ratio: float | None = None
    target: float | None = None

    @property
    def met(self) -> bool | None:
        """Against the target: a ratio's if there is a ratio, else the value's own."""
        if self.target is None:
            return None
        return (self.value if self.ratio is None else self.ratio) <= self.target

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    title: str
    rows: list[Row]
    note: str = ""


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def file_system(path: Path) -> str:
    """What a directory is on: ext4, tmpfs, overlay."""
    path, found = path.resolve(), ("", "unknown")
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mounts").read_text().splitlines():
            point, kind = line.split()[1:3]
            if path.is_relative_to(point) and len(point) >= len(found[0]):
                found = point, kind
    return found[1]


def take_turns(
    contestants: Mapping[str, Callable[[], float]], turns: int
) -> dict[str, list[float]]:
    """Lets each measure itself in turn; every other round in the opposite order."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(turns):
        order = list(contestants)
        for name in order if turn % 2 == 0 else reversed(order):
            taken[name].append(contestants[name]())
    return taken


def medians(taken: Mapping[str, list[float]]) -> dict[str, float]:
    return {name: median(values) for name, values in taken.items()}


def render(table: Table) -> str:
    header = ["", "median", "ratio", "target", ""]
    lines = [header]
    for row in table.rows:
        ratio = f"{row.ratio:.2f} x {row.against}" if row.ratio is not None else ""
        target = ""
        if row.target is not None:
            target = f"<= {row.target:g}" + (" x" if row.ratio is not None else f" {row.unit}")
        met = {None: "", True: "met", False: "MISSED"}[row.met]
        lines.append([row.what, f"{row.value:.3g} {row.unit}", ratio, target, met])
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    shown = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    note = f"\n{table.note}" if table.note else ""
    return f"{table.title}\n" + "\n".join(shown) + note
