"""Synthetic searches with known optima: what a policy is worth, without git or Lean.

A state is grown by a random change of its parent. What the policy sees is noisy; what counts is
the true quality, 0 to 1, of the state it would hand over: the best of those it measured, by its
measurements. Every landscape is made from a seed and differs between seeds.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol


class Landscape(Protocol):
    name: str

    def start(self) -> Any: ...

    def change(self, state: Any, rng: random.Random) -> Any: ...

    def quality(self, state: Any) -> float:
        """From 0 to 1; 1 is the optimum."""
        ...


@dataclass(frozen=True)
class Slope:
    """Six numbers, one optimum, steps of any length: small gains that add up."""

    seed: int
    name: str = "slope"

    def start(self) -> list[float]:
        return [0.0] * 6

    def change(self, state: list[float], rng: random.Random) -> list[float]:
        moved = list(state)
        moved[rng.randrange(6)] += rng.gauss(0.0, 0.5)
        return moved

    def quality(self, state: list[float]) -> float:
        rng = random.Random(self.seed)
        goal = [rng.uniform(-2.0, 2.0) for _ in state]
        distance = math.dist(state, goal)
        return math.exp(-distance / 2.0)


@dataclass(frozen=True)
class Modules:
    """Eight modules with five variants each; a right one pays more when its neighbour is right."""

    seed: int
    name: str = "modules"

    def start(self) -> list[int]:
        return [0] * 8

    def change(self, state: list[int], rng: random.Random) -> list[int]:
        moved = list(state)
        moved[rng.randrange(8)] = rng.randrange(5)
        return moved

    def quality(self, state: list[int]) -> float:
        rng = random.Random(self.seed)
        right = [rng.randrange(5) == variant for variant in state]
        single = sum(right)
        pairs = sum(a and b for a, b in pairwise(right))
        return (single + pairs) / 15.0


@dataclass(frozen=True)
class Trap:
    """Most of what helps at once leads away from the best: 12 bits, traps of three."""

    seed: int
    name: str = "trap"

    def start(self) -> list[int]:
        rng = random.Random(self.seed)
        return [rng.randrange(2) for _ in range(12)]

    def change(self, state: list[int], rng: random.Random) -> list[int]:
        moved = list(state)
        for _ in range(rng.choice((1, 1, 2))):
            moved[rng.randrange(12)] ^= 1
        return moved

    def quality(self, state: list[int]) -> float:
        total = 0.0
        for block in range(0, 12, 3):
            ones = sum(state[block : block + 3])
            total += 1.0 if ones == 3 else 0.6 * (2 - ones) / 2
        return total / 4.0


@dataclass(frozen=True)
class Rugged:
    """An NK landscape, 16 bits with 3 neighbours: many local optima of different height."""

    seed: int
    name: str = "rugged"

    def start(self) -> list[int]:
        return [0] * 16

    def change(self, state: list[int], rng: random.Random) -> list[int]:
        moved = list(state)
        moved[rng.randrange(16)] ^= 1
        return moved

    def quality(self, state: list[int]) -> float:
        total = 0.0
        for i in range(16):
            key = tuple(state[(i + j) % 16] for j in range(4))
            total += random.Random(hash((self.seed, i, key))).random()
        return min(1.0, max(0.0, (total / 16.0 - 0.3) / 0.5))


@dataclass(frozen=True)
class Dead:
    """Like the slope, but most changes break something for good: good ancestors are worth much."""

    seed: int
    name: str = "fragile"

    def start(self) -> list[float]:
        return [0.0, 0.0, 0.0, 1.0]

    def change(self, state: list[float], rng: random.Random) -> list[float]:
        moved = list(state)
        moved[rng.randrange(3)] += rng.gauss(0.15, 0.4)
        if rng.random() < 0.4:
            moved[3] *= 0.6
        return moved

    def quality(self, state: list[float]) -> float:
        rng = random.Random(self.seed)
        goal = [rng.uniform(0.5, 2.0) for _ in range(3)]
        return state[3] * math.exp(-math.dist(state[:3], goal) / 1.5)


LANDSCAPES: tuple[type[Landscape], ...] = (Slope, Modules, Trap, Rugged, Dead)
