"""Repeated sweeps of a candidate and its parent, in turns.

A machine that warms up, slows down or is shared changes the numbers over time. The parent is
therefore measured again with every candidate, and the order changes from one repeat to the next.
"""

from __future__ import annotations

from collections.abc import Callable

from treewright.tree.deciding import results
from treewright.tree.deciding.results import Part, Side

Sweep = Callable[[int], bytes | None]
"""A function that sweeps for a repeat; repeats are numbered from 1."""


def in_turns(candidate: Sweep, parent: Sweep, repeats: int) -> bytes | None:
    """Return all results in one file, or None if the candidate wrote none."""
    parts: list[tuple[Part, bytes]] = []
    for number in range(1, repeats + 1):
        order: list[Side] = ["parent", "candidate"]
        for side in order if number % 2 else reversed(order):
            data = parent(number) if side == "parent" else candidate(number)
            if data is None:
                return None
            parts.append((Part(side, number), data))
    return results.merge_sweeps(parts)


def one_after_the_other(sweep: Callable[[int], bytes], repeats: int) -> bytes:
    """Return the repeated results of the root, which has no parent to take turns with."""
    if repeats == 1:
        return sweep(1)
    return results.merge_sweeps([(Part(repeat=n), sweep(n)) for n in range(1, repeats + 1)])
