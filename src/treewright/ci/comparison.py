"""Which `sorry`s are new, and which are gone. Pure.

A `sorry` is known by its declaration and by what is to be proved there, so it stays the same
where lines above it change, and where its declaration goes to another file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

import msgspec

from treewright.lean.sorries import FileSorries, Sorry

_NUMBERED = re.compile(r"(\?[\w✝.]*?|_uniq)\.\d+")


class OpenGoal(msgspec.Struct, frozen=True):
    """One `sorry` of a file. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    declaration: str
    goal: str


def open_goals(found: FileSorries, name: str) -> Iterator[OpenGoal]:
    """Those of a file that is shown as `name`."""
    for sorry in found.sorries:
        yield OpenGoal(name, sorry.line, sorry.column + 1, sorry.declaration, goal_text(sorry))


def goal_text(sorry: Sorry) -> str:
    """All that it leaves open, as Lean shows it; numbers that Lean counts up do not matter."""
    shown = "\n\n".join(goal.pretty for goal in sorry.goals)
    return _NUMBERED.sub(r"\1", shown)


def compare(
    base: Sequence[OpenGoal], head: Sequence[OpenGoal]
) -> tuple[list[OpenGoal], list[OpenGoal]]:
    """The new ones and those that are gone, each in its order."""
    new, gone = _unmatched(base, head, lambda g: (g.file, g.declaration, g.goal))
    return _unmatched(gone, new, lambda g: (g.declaration, g.goal))


def _unmatched(
    base: Sequence[OpenGoal], head: Sequence[OpenGoal], key: Callable[[OpenGoal], Hashable]
) -> tuple[list[OpenGoal], list[OpenGoal]]:
    return _beyond(head, Counter(map(key, base)), key), _beyond(base, Counter(map(key, head)), key)


def _beyond(
    goals: Sequence[OpenGoal], known: Counter[Hashable], key: Callable[[OpenGoal], Hashable]
) -> list[OpenGoal]:
    """Of equal ones, the first count as known."""
    left = []
    for goal in goals:
        if known[key(goal)]:
            known[key(goal)] -= 1
        else:
            left.append(goal)
    return left
