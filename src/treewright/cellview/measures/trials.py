"""A trial: one search of a goal. Robustness and dose-response compare trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from treewright.proving.records import Iteration


class Trial(msgspec.Struct, frozen=True):
    """`steps` and `attempts` count until the root was solved, or all of them if it was not."""

    goal: str
    seed: int
    solved: bool
    steps: int
    attempts: int

    @property
    def pair(self) -> tuple[str, int]:
        return self.goal, self.seed


def trial_of(goal: str, seed: int, iterations: Sequence[Iteration]) -> Trial:
    """Return the trial of one goal's iterations.

    Iterations in which an agent was idle are steps too.
    """
    attempts = 0
    for steps, turn in enumerate(iterations, 1):
        attempts += len(turn.attempts)
        if 0 in turn.solved:
            return Trial(goal, seed, True, steps, attempts)
    return Trial(goal, seed, False, len(iterations), attempts)


def by_goal(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Return the trials by goal: those of one goal resemble each other, so they are one cluster."""
    clusters: dict[str, list[Trial]] = {}
    for trial in trials:
        clusters.setdefault(trial.goal, []).append(trial)
    return clusters


def restricted(trial: Trial, limit: int) -> int:
    """Return the steps up to a limit; an unsolved trial counts with the limit."""
    return min(trial.steps, limit) if trial.solved else limit
