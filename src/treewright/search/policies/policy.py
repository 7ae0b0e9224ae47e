"""The interface of a policy: a pure function from a tree and random numbers to the next choice."""

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
    """A choice to grow a child.

    Attributes:
        parent: The number of the branch under which the child grows.
        action: One of the tree's actions, if it has any.
    """

    parent: int
    action: str | None = None


class Policy(msgspec.Struct, frozen=True):
    """The base class of all policies.

    A policy is a frozen struct. Its fields are its settings. Its tag, its `name` and the name of
    its entry point in the group `treewright.policies` are the same. It keeps nothing between calls,
    so every process with the same tree and the same seed makes the same choice.

    Example:
        >>> class Oldest(Policy, frozen=True, tag="oldest"):
        ...     name = "oldest"
        ...     summary = "the oldest node that can grow"
        ...
        ...     def choose(self, tree, rng):
        ...         return Choice(tree.growing[0].number) if tree.growing else None
        >>> Oldest().choose(Tree(), Random(0))
        Choice(parent=0, action=None)
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    """One line for help texts and reports."""
    has_barrier: ClassVar[bool] = False
    """Whether the policy waits for whole depths, so that lookahead and order change nothing."""

    sums_subtrees: ClassVar[bool] = False
    """Whether the policy reads statistics of whole subtrees, which cost more in a deep tree."""

    branching: ClassVar[int | None] = None
    """The most children of a node, unless the search sets another number; None is no limit."""

    @abstractmethod
    def choose(self, tree: Tree, rng: Random) -> Choice | None:
        """Return the next child to grow.

        Args:
            tree: The tree with the outcomes that the choice may know. It must not be changed.
            rng: Random numbers for this choice.

        Returns:
            The choice, or None to wait for more outcomes. If no outcome is missing, None ends the
            search.
        """


def any_action(tree: Tree, rng: Random) -> str | None:
    """Return a random action, for policies that do not learn which actions are better."""
    return rng.choice(tree.actions) if tree.actions else None
