"""What a policy over AND/OR graphs is: two functions without memory.

`choose` goes from the graph and a seed to the next goal to work on; `learn` enters what came of it
into the graph's statistics. A policy is a frozen struct whose fields are its settings, so any
process that has the same graph and the same seed chooses the same.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

import msgspec

from treewright.search.andor.graph import Changes, Graph, Node
from treewright.search.andor.statistics import Backup, Step, back_up

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

Way = tuple[list[Step], Node]
"""From the root to a goal that is to be worked on."""


class Policy:
    """The base of all; a subclass is also a struct, tagged with its name.

    Not a struct itself: what reads a recorded policy must ask the registry which one it is.
    """

    __slots__ = ()

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for help texts and reports."""

    discount: float
    """What a step leaves of a goal's value: the shorter of two equal ways is the better one."""
    backup: Backup
    """Whether an edge is worth the product of its goals' values, or the least of them."""

    @abstractmethod
    def choose(self, graph: Graph, seed: int) -> Way:
        """The goal to work on next: open, and not exhausted. The root must be open."""

    def learn(self, graph: Graph, way: Way, value: float, changes: Changes) -> None:
        """What a turn at the chosen goal found it to be worth, and what it settled."""
        back_up(way[0], way[1], value, self)
