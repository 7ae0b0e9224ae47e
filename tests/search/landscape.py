"""Evaluations for the tests: a walk on a line towards 3, deterministic by the task's seed."""

from __future__ import annotations

import random

from treewright.search.durable_search import Search
from treewright.search.tasks import Result, Task


def walk(task: Task) -> Result:
    rng = random.Random(task.seed)
    place = (task.parent.data or 0.0) + rng.gauss(0.0, 0.4)
    return Result(-abs(place - 3.0), data=place)


def shape(search: Search) -> list[tuple[int, int, float]]:
    """The shape of a search: number, parent and score of every task."""
    return [
        (node.number, node.parent.number, node.score or 0.0)
        for node in search.nodes
        if node.parent is not None
    ]
