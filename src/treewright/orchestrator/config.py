"""What can be chosen about the scheduler, and the profiles that choose it together."""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
from msgspec import Meta

from treewright.kernel.errors import UsageError
from treewright.orchestrator import strategies
from treewright.orchestrator.scheduling.bandit import DEFAULT_EXPLORATION
from treewright.orchestrator.scheduling.throttle import DEFAULT_ALPHA
from treewright.orchestrator.types import StrategyType

PROFILE_VARIABLE = "ORCH_PROFILE"
DEFAULT_PROFILE = 1


class OrchestratorConfig(msgspec.Struct, frozen=True):
    """The settings of a portfolio run. The descriptions are also help texts of `treewright bank`.

    `profile` 0 has stub workers and no Lean; 1 shares the machine; 2 takes all of it.

    `strategies` limits the portfolio (empty: every available one). `reuse` takes earlier
    attempts of the ledger and its tactic cache into account; `lessons` what its searches taught.
    """

    profile: int = DEFAULT_PROFILE
    max_light: Annotated[
        int, Meta(description="Goals of difficulty below 0.6 that are worked on at the same time.")
    ] = 8
    max_heavy: Annotated[
        int, Meta(description="Goals of difficulty 0.6 and more, at the same time.")
    ] = 2
    cpu_target: Annotated[
        float, Meta(ge=0, description="Load per core above which no goal is started.")
    ] = 0.5
    cpu_alpha: Annotated[
        float,
        Meta(gt=0, le=1, description="Weight of a new reading in the moving average of the load."),
    ] = DEFAULT_ALPHA
    exploration: Annotated[
        float, Meta(ge=0, description="Exploration constant of the bandit over strategies.")
    ] = DEFAULT_EXPLORATION
    speculation: Annotated[
        int, Meta(description="Most strategies that work on one goal at the same time.")
    ] = 3
    lean_sessions: Annotated[int, Meta(description="Lean processes that try tactics.")] = 2
    strategies: tuple[str, ...] = ()
    timeouts: dict[str, float] = {}
    reuse: bool = True
    lessons: bool = False

    def timeout(self, strategy: str) -> float:
        given = self.timeouts.get(strategy)
        return strategies.seconds(strategy) if given is None else given

    @property
    def attempts_at_once(self) -> int:
        """No more are ever under way: so many goals, each with a race."""
        return (self.max_light + self.max_heavy) * self.speculation

    @property
    def portfolio(self) -> tuple[str, ...]:
        """Names that are registered; anything else is refused."""
        strategies.check(self.strategies)
        return self.strategies or tuple(strategies.known())


_PROFILES = {
    0: OrchestratorConfig(profile=0, cpu_target=1000.0),
    1: OrchestratorConfig(profile=1),
    2: OrchestratorConfig(profile=2, cpu_target=1.5),
}


def from_profile(number: int | None = None) -> OrchestratorConfig:
    """The settings of a profile: the given one, that of `ORCH_PROFILE`, or 1."""
    if number is None:
        text = os.environ.get(PROFILE_VARIABLE, "").strip()
        if text and not text.isdigit():
            raise UsageError(f"{PROFILE_VARIABLE} is {text!r}; it has to be 0, 1 or 2")
        number = int(text) if text else DEFAULT_PROFILE
    if number not in _PROFILES:
        raise UsageError(f"there is no profile {number}; there are 0, 1 and 2")
    return _PROFILES[number]


def parse_timeouts(pairs: tuple[str, ...]) -> dict[str, float]:
    """`micro=8` and the like."""
    found: dict[str, float] = {}
    for pair in pairs:
        name, _, seconds = pair.partition("=")
        try:
            value = float(seconds)
            if name not in (*strategies.known(), StrategyType.CACHE):
                raise ValueError
        except ValueError:
            names = ", ".join(strategies.known())
            raise UsageError(
                f"a strategy's time limit is NAME=SECONDS with a name of {names}; not {pair!r}"
            ) from None
        if not value > 0:
            raise UsageError(f"the time limit of {name} has to be positive")
        found[name] = value
    return found
