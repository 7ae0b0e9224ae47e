"""The sequencer: decides which outcomes each choice knows, so that timing does not change the tree.

In `fixed` order the k-th choice knows the outcomes of the choices up to k - lookahead, applied in
their order. So at most `lookahead` choices are under way, and the duration of an evaluation changes
nothing. Only if the policy waits are later outcomes added, one by one in their order, until it
makes a choice.

In `live` order a choice knows every outcome so far. That search learns sooner and cannot be
repeated. The outcomes that each choice knew are recorded, so it can be resumed and validated.

Nothing here touches files or clocks; `study.py` and `tree.run` make the choices durable.
"""

from __future__ import annotations

from random import Random
from typing import Literal, NamedTuple

from treewright.search.node import Node
from treewright.search.policies.policy import Choice, Policy
from treewright.search.tree import Branch, Tree

Order = Literal["fixed", "live"]
_MASK = (1 << 64) - 1


class Outcome(NamedTuple):
    """The outcome of a choice: a node, or None for a failure."""

    node: Node | None
    expandable: bool = True
    prior: float = 1.0
    exhausts_parent: bool = False
    """Whether the parent gets no further child, because there are no ideas left for it."""


class Sequencer:
    """Asks the policy for one choice after another, on a tree with the outcomes it may know.

    `seen` counts the outcomes in the tree; it is recorded with every choice.
    """

    def __init__(
        self, tree: Tree, policy: Policy, seed: int, order: Order = "fixed", lookahead: int = 1
    ) -> None:
        self.tree = tree
        self.policy = policy
        self.seen = 0
        self._seed = seed
        self._is_fixed = order == "fixed"
        self._lookahead = lookahead
        self._horizon = 0
        """In fixed order: the tree gets the outcomes up to this choice."""
        self._told: dict[int, Outcome] = {}
        """In fixed order: outcomes that no choice may know yet."""
        self._waited_at: tuple[int, int, tuple[int, ...]] | None = None
        """The state at which the policy waited; it is not asked again before the state changes."""

    @property
    def made(self) -> int:
        """The number of choices so far."""
        return len(self.tree) - 1

    @property
    def under_way(self) -> int:
        """The number of choices without an outcome. The tree counts told ones as pending."""
        return self.tree.pending - len(self._told)

    @property
    def is_over(self) -> bool:
        """Whether the policy waits although no outcome is missing."""
        return self.under_way == 0 and self.propose() is None

    def next(self) -> Branch | None:
        """Make the next choice; None if the policy waits, or the search is over (`is_over`)."""
        choice = self.propose()
        return None if choice is None else self._reserve(choice)

    def propose(self) -> Choice | None:
        """Return the next choice without making it; None if the policy waits.

        The outcomes that the choice may know are added to the tree.

        If there is nothing to try under the chosen node, the caller calls `exhaust` and asks again.
        Until the tree changes, the choice stays the same.
        """
        number = self.made + 1
        while True:
            if self._is_fixed:
                self._horizon = max(self._horizon, number - self._lookahead)
                if not self._admit(self._horizon):
                    return None
            state = (self.made, self.seen, self.tree.suspended)
            if self._waited_at != state:
                choice = self.policy.choose(self.tree, stream(self._seed, number))
                if choice is not None:
                    return choice
                self._waited_at = state
            if not self._is_fixed or self.seen == self.made:
                return None
            self._horizon = self.seen + 1

    def tell(self, number: int, outcome: Outcome) -> None:
        """Enter an outcome, in any order; it is added to the tree when a choice may know it."""
        if self._is_fixed:
            self._told[number] = outcome
        else:
            self._settle(number, outcome)

    def take(self, choice: Choice, seen: int) -> Branch:
        """Make a recorded choice, which knew `seen` outcomes. The policy is not asked.

        Raises:
            ValueError: The choice does not fit the tree.
        """
        self._add_outcomes(seen)
        return self._reserve(choice)

    def exhaust(self, parent: int, seen: int | None = None) -> None:
        """Record that a node gets no further child.

        Args:
            parent: The node.
            seen: The number of outcomes that were known then, for a search that is rebuilt.
                Default: those that are known now.
        """
        if seen is not None:
            self._add_outcomes(seen)
        self.tree.exhaust(parent)
        self._waited_at = None

    def _add_outcomes(self, seen: int) -> None:
        """Add outcomes until the tree has `seen` of them."""
        if self._is_fixed:
            self._horizon = max(self._horizon, seen)
            self._admit(seen)
        if self.seen != seen:
            raise ValueError(f"it knew {seen} outcomes where there are {self.seen}")

    def _reserve(self, choice: Choice) -> Branch:
        """Make a choice of a policy, which may be a plug-in, or of a file; check it first."""
        parent, action = choice
        actions = self.tree.actions
        is_allowed = action in actions if actions else action is None
        if not is_allowed:
            there = ", ".join(actions) or "no actions"
            raise ValueError(f"policy {self.policy.name} chose action {action!r} of {there}")
        try:
            return self.tree.reserve(parent, action)
        except (ValueError, TypeError) as error:
            raise ValueError(f"policy {self.policy.name} chose {parent!r}: {error}") from None

    def _admit(self, horizon: int) -> bool:
        """Add the outcomes up to that choice to the tree; return False if one is missing."""
        while self.seen < horizon:
            outcome = self._told.pop(self.seen + 1, None)
            if outcome is None:
                return False
            self._settle(self.seen + 1, outcome)
        return True

    def _settle(self, number: int, outcome: Outcome) -> None:
        self.tree.settle(
            number,
            outcome.node,
            expandable=outcome.expandable,
            prior=outcome.prior,
            exhausts_parent=outcome.exhausts_parent,
        )
        self.seen += 1


def stream(seed: int, number: int) -> Random:
    """Return the random numbers of one choice, the same on every machine."""
    return Random((seed << 64) | number)  # noqa: S311 - for choosing, not for secrets


def task_seed(seed: int, number: int) -> int:
    """Return the seed for the evaluation of a choice: SplitMix64 of the seed and the number.

    It is another stream than that of the choice itself.
    """
    x = (seed * 0x9E3779B97F4A7C15 + number * 0xD1B54A32D192ED03 + 1) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 31)) >> 1
