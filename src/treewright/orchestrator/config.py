"""The settings of the scheduler, and the profiles that set them together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from treewright.kernel.errors import UsageError
from treewright.orchestrator import strategies
from treewright.orchestrator.bandit import DEFAULT_EXPLORATION
from treewright.orchestrator.types import PROFILE_VARIABLE, StrategyType

DEFAULT_PROFILE = 1
DEFAULT_ALPHA = 0.1
_COUNTS = ("max_light", "max_heavy", "speculation", "lean_sessions")


class OrchestratorConfig(msgspec.Struct, frozen=True):
    """The settings of a scheduler; their descriptions are also help texts of `treewright bank`.

    `profile` 0 has stub workers and no Lean, 1 shares the machine, 2 uses all of it.
    `strategies` limits the portfolio; an empty one means every available strategy. With `reuse`
    earlier attempts of the ledger and its tactic cache count; with `lessons` searches are given
    the lessons of earlier searches.
    """

    profile: int = DEFAULT_PROFILE
    max_light: Annotated[
        int, Meta(description="Goals of difficulty below 0.6 that are worked on at the same time.")
    ] = 8
    max_heavy: Annotated[
        int, Meta(description="Goals of difficulty 0.6 and more, at the same time.")
    ] = 2
    cpu_target: Annotated[
        float,
        Meta(ge=0, description="Load per core above which each start waits, up to a second."),
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

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if (value := getattr(self, name)) < 1:
                raise UsageError(f"{name} must be at least 1, not {value}")

    def timeout(self, strategy: str) -> float:
        """Return the seconds that a strategy has for one goal."""
        configured = self.timeouts.get(strategy)
        return strategies.default_timeout(strategy) if configured is None else configured

    @property
    def max_parallel_attempts(self) -> int:
        """The largest number of attempts under way: each goal in a lane may have a race."""
        return (self.max_light + self.max_heavy) * self.speculation

    @property
    def portfolio(self) -> tuple[str, ...]:
        """The names of the strategies to use; a name that is not registered is an error."""
        strategies.require_known(self.strategies)
        return self.strategies or tuple(strategies.registered())


_PROFILES = {
    0: OrchestratorConfig(profile=0, cpu_target=1000.0),
    1: OrchestratorConfig(profile=1),
    2: OrchestratorConfig(profile=2, cpu_target=1.5),
}


def profile_number() -> int:
    """Return the profile that `ORCH_PROFILE` names, or 1."""
    text = os.environ.get(PROFILE_VARIABLE, "").strip()
    if text and not text.isdigit():
        raise UsageError(f"{PROFILE_VARIABLE} is {text!r}; it has to be 0, 1 or 2")
    return int(text) if text else DEFAULT_PROFILE


def from_profile(number: int | None = None) -> OrchestratorConfig:
    """Return the settings of a profile; without a number, of the one that `ORCH_PROFILE` names."""
    if number is None:
        number = profile_number()
    if number not in _PROFILES:
        raise UsageError(f"there is no profile {number}; there are 0, 1 and 2")
    return _PROFILES[number]


def with_settings(config: OrchestratorConfig, settings: Mapping[str, object]) -> OrchestratorConfig:
    """Return the configuration with some settings replaced.

    Raises:
        UsageError: A setting does not exist, or its value is of the wrong type.
    """
    if not settings:
        return config
    names = OrchestratorConfig.__struct_fields__
    for name in settings:
        if name not in names:
            raise UsageError(f"there is no setting {name!r}; the settings are {', '.join(names)}")
    try:
        return msgspec.convert(msgspec.structs.asdict(config) | dict(settings), OrchestratorConfig)
    except msgspec.ValidationError as error:
        raise UsageError(f"a setting of the scheduler is wrong: {error}") from None


def parse_timeouts(pairs: tuple[str, ...]) -> dict[str, float]:
    """Read `NAME=SECONDS` pairs, such as `micro=8`."""
    found: dict[str, float] = {}
    for pair in pairs:
        name, _, seconds = pair.partition("=")
        try:
            value = float(seconds)
            if name not in (*strategies.registered(), StrategyType.CACHE):
                raise ValueError
        except ValueError:
            names = ", ".join(strategies.registered())
            raise UsageError(
                f"a strategy's time limit is NAME=SECONDS with a name of {names}; not {pair!r}"
            ) from None
        if not value > 0:
            raise UsageError(f"the time limit of {name} has to be positive")
        found[name] = value
    return found
