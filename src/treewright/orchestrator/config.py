"""What can be chosen about the scheduler, and the profiles that choose it together."""

from __future__ import annotations

import os

import msgspec

from treewright.kernel.errors import UsageError
from treewright.orchestrator.scheduling.bandit import DEFAULT_EXPLORATION
from treewright.orchestrator.scheduling.throttle import DEFAULT_ALPHA
from treewright.orchestrator.types import ARMS, DEFAULT_TIMEOUTS, StrategyType

PROFILE_VARIABLE = "ORCH_PROFILE"
DEFAULT_PROFILE = 1


class OrchestratorConfig(msgspec.Struct, frozen=True):
    """`profile` 0 has stub workers and no Lean; 1 shares the machine; 2 takes all of it.

    `strategies` limits the portfolio (empty: every available one). `reuse` takes earlier
    attempts of the ledger and its tactic cache into account.
    """

    profile: int = DEFAULT_PROFILE
    max_light: int = 8
    max_heavy: int = 2
    cpu_target: float = 0.5
    cpu_alpha: float = DEFAULT_ALPHA
    exploration: float = DEFAULT_EXPLORATION
    speculation: int = 3
    lean_sessions: int = 2
    strategies: tuple[StrategyType, ...] = ()
    timeouts: dict[StrategyType, float] = {}
    reuse: bool = True

    def timeout(self, strategy: StrategyType) -> float:
        return self.timeouts.get(strategy, DEFAULT_TIMEOUTS[strategy])

    @property
    def attempts_at_once(self) -> int:
        """No more are ever under way: so many goals, each with a race."""
        return (self.max_light + self.max_heavy) * self.speculation

    @property
    def portfolio(self) -> tuple[StrategyType, ...]:
        return self.strategies or ARMS


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


def parse_timeouts(pairs: tuple[str, ...]) -> dict[StrategyType, float]:
    """`micro=8` and the like."""
    found: dict[StrategyType, float] = {}
    for pair in pairs:
        name, _, seconds = pair.partition("=")
        try:
            value = float(seconds)
            strategy = StrategyType(name)
        except ValueError:
            names = ", ".join(ARMS)
            raise UsageError(
                f"a strategy's time limit is NAME=SECONDS with a name of {names}; not {pair!r}"
            ) from None
        if not value > 0:
            raise UsageError(f"the time limit of {name} has to be positive")
        found[strategy] = value
    return found
