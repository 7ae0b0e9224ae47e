"""What a run had found by when: its curve, from records of any kind. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from treewright.runs.comparison import Point


class Spent(NamedTuple):
    """One evaluation has ended: when, for how much, and what it brought, if anything.

    Or, where `counts` is false, something beside evaluations was paid for. What has no known
    price has the cost None.
    """

    seconds: float
    cost_usd: float | None
    found: float | None
    counts: bool = True


def curve(
    events: Iterable[Spent], *, higher: bool = True, start: float | None = None, adds: bool = False
) -> tuple[Point, ...]:
    """What is best after each evaluation and at the end; with `adds` findings are summed up.

    `start` is what there is before anything was tried. Points have a cost only if everything has
    one: what has no price is not free.
    """
    ordered = sorted(events, key=lambda event: event.seconds)
    priced = bool(ordered) and all(event.cost_usd is not None for event in ordered)
    count, cost = 0, 0.0 if priced else None
    best = start
    points = [Point(0, 0.0, best, cost)] if best is not None else []
    for event in ordered:
        count += event.counts
        if cost is not None:
            cost += event.cost_usd or 0.0
        if event.found is not None:
            if adds:
                best = (best or 0.0) + event.found
            elif best is None or (event.found > best if higher else event.found < best):
                best = event.found
        if best is not None and (event.counts or event is ordered[-1]):
            points.append(Point(count, event.seconds, best, cost))
    return tuple(points)
