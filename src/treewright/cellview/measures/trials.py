"""A trial: one goal searched once. What robustness and dose-response compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from treewright.proving.records import Iteration


class Trial(msgspec.Struct, frozen=True):
    """`steps` and `attempts` are those spent until the root was solved, or in all if it was not."""

    goal: str
    seed: int
    solved: bool
    steps: int
    attempts: int

    @property
    def pair(self) -> tuple[str, int]:
        return self.goal, self.seed


def trial_of(goal: str, seed: int, iterations: Sequence[Iteration]) -> Trial:
    """From one goal's iterations. Turns in which an agent was kept from working are steps too."""
    attempts = 0
    for steps, turn in enumerate(iterations, 1):
        attempts += len(turn.attempts)
        if 0 in turn.solved:
            return Trial(goal, seed, True, steps, attempts)
    return Trial(goal, seed, False, len(iterations), attempts)


def by_goal(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Trials of one goal under different seeds resemble each other: they are one cluster."""
    clusters: dict[str, list[Trial]] = {}
    for trial in trials:
        clusters.setdefault(trial.goal, []).append(trial)
    return clusters


def restricted(trial: Trial, limit: int) -> int:
    """Steps up to a limit; who did not solve the goal is counted with the limit."""
    return min(trial.steps, limit) if trial.solved else limit
