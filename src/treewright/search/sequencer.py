"""Which choice comes next, and what it may know: the same tree whatever the timing.

`fixed` order: the k-th choice knows the outcomes of the choices up to k - lookahead, applied in
their order, and no others; so at most `lookahead` are under way, and how long each takes changes
nothing. Where the policy has to wait for more, outcomes are let in one by one, in order.
`live` order: a choice knows every outcome there is. That is quicker to learn and cannot be
repeated, but what each choice knew is recorded, so it resumes and can be checked.

Nothing here touches files or clocks; `study.py` and the engines make it durable.
"""

from __future__ import annotations

from random import Random
from typing import Literal, NamedTuple

from treewright.search.policies.base import Choice, Policy
from treewright.search.tree import Branch, Node, Tree

Order = Literal["fixed", "live"]
_MASK = (1 << 64) - 1


class Outcome(NamedTuple):
    """What came of a choice: a node, or None for a failure."""

    node: Node | None
    expandable: bool = True
    prior: float = 1.0
    exhausts_parent: bool = False
    """Nothing more can be tried under the parent: a domain ran out of ideas for it."""


class Sequencer:
    """Asks the policy for one choice after another, on a tree that knows what it may know.

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
        self._told: dict[int, Outcome] = {}
        self._waited_at: tuple[int, int, tuple[int, ...]] | None = None

    @property
    def made(self) -> int:
        """How many choices were made."""
        return len(self.tree) - 1

    @property
    def under_way(self) -> int:
        """Choices without an outcome."""
        return self.tree.pending - len(self._told)

    @property
    def is_over(self) -> bool:
        """Whether the policy waits and no outcome is to come."""
        return self.under_way == 0 and self.propose() is None

    def next(self) -> Branch | None:
        """Makes the next choice; None if it cannot be made yet, or never (`is_over`)."""
        choice = self.propose()
        return None if choice is None else self._reserve(choice)

    def propose(self) -> Choice | None:
        """The next choice, not made yet: a domain may find that nothing can be tried there, say
        so with `exhaust` and ask again. Asked twice, with the same known, it says the same."""
        number = self.made + 1
        while True:
            if self._is_fixed:
                self._horizon = max(self._horizon, number - self._lookahead)
                if not self._admit(self._horizon):
                    return None
            here = (self.made, self.seen, self.tree.held)
            if self._waited_at != here:
                choice = self.policy.choose(self.tree, stream(self._seed, number))
                if choice is not None:
                    return choice
                self._waited_at = here
            if not self._is_fixed or self.seen == self.made:
                return None
            self._horizon = self.seen + 1

    def tell(self, number: int, outcome: Outcome) -> None:
        """Takes an outcome, in any order; the tree gets it when a choice may know it."""
        if self._is_fixed:
            self._told[number] = outcome
        else:
            self._settle(number, outcome)

    def take(self, choice: Choice, seen: int) -> Branch:
        """A choice that was made before, knowing `seen` outcomes; the policy is not asked."""
        self._know(seen)
        return self._reserve(choice)

    def exhaust(self, parent: int, seen: int | None = None) -> None:
        """Nothing more can be tried under a node. `seen`: how many outcomes were known when that
        was found, for a search that is rebuilt; now if nothing is said."""
        if seen is not None:
            self._know(seen)
        self.tree.exhaust(parent)
        self._waited_at = None

    def _know(self, seen: int) -> None:
        if self._is_fixed:
            self._horizon = max(self._horizon, seen)
            self._admit(seen)
        if self.seen != seen:
            raise ValueError(f"it knew {seen} outcomes where there are {self.seen}")

    def _reserve(self, choice: Choice) -> Branch:
        """Of a plug-in or of a file: what is no choice must not get into the tree."""
        parent, action = choice
        actions = self.tree.actions
        if action not in actions if actions else action is not None:
            there = ", ".join(actions) or "no actions"
            raise ValueError(f"policy {self.policy.name} chose action {action!r} of {there}")
        try:
            return self.tree.reserve(parent, action)
        except (ValueError, TypeError) as error:
            raise ValueError(f"policy {self.policy.name} chose {parent!r}: {error}") from None

    def _admit(self, horizon: int) -> bool:
        """Lets in the outcomes up to that choice; False if one of them is missing."""
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
    """The random numbers of one choice, the same wherever it is made."""
    return Random((seed << 64) | number)  # noqa: S311 - for choosing, not for secrets


def task_seed(seed: int, number: int) -> int:
    """For what evaluates a choice, should it need chance: another stream than the choice's.
    SplitMix64 of both."""
    x = (seed * 0x9E3779B97F4A7C15 + number * 0xD1B54A32D192ED03 + 1) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return (x ^ (x >> 31)) >> 1
