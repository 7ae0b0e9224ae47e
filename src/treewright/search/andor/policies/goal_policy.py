"""The interface of a policy over AND/OR graphs: two functions without memory.

`choose` returns the next goal to work on, from the graph and a seed. `learn` enters the result of
that work into the statistics of the graph. A policy is a frozen struct whose fields are its
settings, so every process with the same graph and the same seed makes the same choice.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, ClassVar

import msgspec

from treewright.search.andor.graph import Changes, Graph, Node
from treewright.search.andor.visits import Backup, Step, back_up

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

Descent = tuple[list[Step], Node]
"""The steps from the root to a goal, and that goal."""


class Policy:
    """The base class of all policies over AND/OR graphs.

    A subclass is also a frozen struct, tagged with its name. The base class is not a struct: a
    recorded policy is decoded by the registry, which knows the classes of plug-ins.
    """

    __slots__ = ()

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for help texts and reports."""

    discount: float
    """The factor of each step, so that the shorter of two equal paths has the higher value."""
    backup: Backup
    """Whether the value of an edge is the product of its goals' values, or the least of them."""

    @abstractmethod
    def choose(self, graph: Graph, seed: int) -> Descent:
        """Return the goal to work on next: open and not exhausted. The root must be open."""

    def learn(self, graph: Graph, descent: Descent, value: float, changes: Changes) -> None:
        """Enter the value that the work on a goal found, and the goals that it solved or killed."""
        back_up(descent[0], descent[1], value, self)
