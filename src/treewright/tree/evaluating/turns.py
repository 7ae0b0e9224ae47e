"""A candidate and its parent swept several times, in turns.

A machine that warms up, slows down or is shared would make whoever comes second look worse. So
the parent is measured again beside every candidate, and who comes first changes from one repeat
to the next.
"""

from __future__ import annotations

from collections.abc import Callable

from treewright.tree.deciding import repeated
from treewright.tree.deciding.results import Part, Side

Sweep = Callable[[int], bytes | None]
"""Sweeps for the repeat of that number, from 1."""


def in_turns(candidate: Sweep, parent: Sweep, repeats: int) -> bytes | None:
    """All results in one file; None if the candidate wrote none. `parent` always returns some."""
    parts: list[tuple[Part, bytes]] = []
    for number in range(1, repeats + 1):
        order: list[Side] = ["parent", "candidate"]
        for side in order if number % 2 else reversed(order):
            data = parent(number) if side == "parent" else candidate(number)
            if data is None:
                return None
            parts.append((Part(side, number), data))
    return repeated.merge(parts)


def one_after_the_other(sweep: Callable[[int], bytes], repeats: int) -> bytes:
    """The root's own: there is nobody to take turns with."""
    if repeats == 1:
        return sweep(1)
    return repeated.merge([(Part(repeat=n), sweep(n)) for n in range(1, repeats + 1)])
