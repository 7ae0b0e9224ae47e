"""What a policy is: a pure function from the tree and a random stream to the next choice.

A policy is a frozen struct whose fields are its settings, and one method. It keeps nothing between
calls, so any process that has the same tree and the same seed chooses the same. `None` means
wait: more outcomes are needed first; if there are none to come, the search is over.
"""

from __future__ import annotations

from abc import abstractmethod
from random import Random
from typing import Annotated, ClassVar, NamedTuple

import msgspec

from treewright.search.tree import Tree

AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
# Bounded so that no power, square or product of them leaves the floats.
Positive = Annotated[float, msgspec.Meta(ge=1e-6, le=1e6)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
Power = Annotated[float, msgspec.Meta(ge=0, le=10)]


class Choice(NamedTuple):
    """Grow a child under `parent`, by `action` where the search has several."""

    parent: int
    action: str | None = None


class Policy(msgspec.Struct, frozen=True):
    """The base of all policies; a subclass is tagged with its name and overrides `choose`."""

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for help texts and reports."""
    has_barrier: ClassVar[bool] = False
    """Whether it waits for whole depths, so that lookahead and live order mean nothing to it."""

    sums_subtrees: ClassVar[bool] = False
    """Whether it reads the statistics of whole subtrees, which cost more the deeper a tree is."""

    branching: ClassVar[int | None] = None
    """The most children of a node where the search does not say; None is no limit."""

    @abstractmethod
    def choose(self, tree: Tree, rng: Random) -> Choice | None:
        """The next child to grow, or None to wait for more outcomes."""


def any_action(tree: Tree, rng: Random) -> str | None:
    """For policies that do not tell actions apart."""
    return rng.choice(tree.actions) if tree.actions else None
