"""A world of goals made of numbers: free steps, with shared goals, circles and dead ends.

The goal `k` under tactic `t` leaves goals computed from a hash of both, so that the world is the
same for every user of its seed and needs no memory. Stands in for Lean where a test is about the
search itself and needs thousands of steps.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from treewright.lean.session.knowledge import NOTHING_KNOWN, Knowledge
from treewright.proving.environment import Outcome, Subgoal
from treewright.proving.expansion import Expander
from treewright.proving.learning import LearnedPriors
from treewright.proving.records import Candidate, GoalView
from treewright.proving.tactics.source import Suggestions


class World:
    """`size` goals; a tactic fails, closes, or leaves one to three goals."""

    def __init__(self, seed: int, size: int = 60, closing: float = 0.1, failing: float = 0.3):
        self._seed = seed
        self._size = size
        self._closing = closing
        self._failing = failing
        self._key: dict[int, str] = {0: "0"}
        self._last: dict[tuple[int, str], tuple[str, ...]] = {}
        self.calls: list[tuple[int, str]] = []

    def draw(self, *what: object) -> float:
        digest = hashlib.sha256(repr((self._seed, *what)).encode()).digest()
        return int.from_bytes(digest[:6]) / (1 << 48)

    def outcome(self, key: str, tactic: str) -> tuple[str, tuple[str, ...]]:
        drawn = self.draw(key, tactic)
        if drawn < self._failing:
            return "error", ()
        if drawn < self._failing + self._closing:
            return "closed", ()
        count = 1 + int(self.draw(key, tactic, "count") * 3)
        goals = (int(self.draw(key, tactic, i) * self._size) for i in range(count))
        return "goals", tuple(str(goal) for goal in goals)

    # -- Environment ----------------------------------------------------------------------

    def root(self) -> Subgoal:
        return Subgoal("0", (GoalView("0"),), (0,))

    def apply(self, node: int, tactic: str) -> Outcome:
        self.calls.append((node, tactic))
        kind, keys = self.outcome(self._key[node], tactic)
        self._last[node, tactic] = keys
        subgoals = tuple(Subgoal(k, (GoalView(k),), (i,)) for i, k in enumerate(keys))
        return Outcome(kind, subgoals, detail="no" if kind == "error" else "")  # pyright: ignore[reportArgumentType]

    def bind(self, parent: int, tactic: str, children: Sequence[int]) -> None:
        keys = self._last.pop((parent, tactic), ())
        for child, key in zip(children, keys, strict=False):
            self._key[child] = key

    def knowledge(self, node: int) -> Knowledge:
        return NOTHING_KNOWN

    def expect(self, node: int, key: str) -> None:
        self._key[node] = key


class Tactics:
    """`count` tactics for every goal, over two rounds; with priors or without."""

    name = "synthetic"

    def __init__(self, count: int = 6, priors: bool = True) -> None:
        self._count = count
        self._priors = priors

    def suggest(self, goals: Sequence[GoalView], round_number: int) -> Suggestions:
        first = self._count // 2
        numbers = range(first) if round_number == 0 else range(first, self._count)
        return Suggestions(
            tuple(
                Candidate(f"t{n}", 1 / (n + 2) if self._priors else None, self.name)
                for n in numbers
            ),
            complete=round_number > 0,
        )


def world_expander(
    seed: int,
    *,
    priors: bool = True,
    batch: int = 2,
    keeps_tries: bool = False,
    learned: LearnedPriors | None = None,
    **world: float,
) -> Expander:
    return Expander(
        World(seed, **world),  # pyright: ignore[reportArgumentType]
        Tactics(priors=priors),
        lambda goals: 0.3 + 0.01 * (int(goals[0].target) % 50),
        batch=batch,
        learned=learned,
        keeps_tries=keeps_tries,
    )
