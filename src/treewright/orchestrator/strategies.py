"""The strategies by name: the built-in ones, and those that other packages register.

A strategy is one file with a `Strategy` in it. Another package registers its strategies under the
entry-point group `treewright.strategies`. Strategies are loaded when they are used. The command
line, the scheduler, `doctor` and the dashboard read the names from here. A ledger may name other
strategies, of a removed plug-in or a newer treewright: they are shown and not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from treewright.kernel.errors import UsageError, require_several
from treewright.kernel.plugins import Plugins
from treewright.orchestrator.types import StrategyType

if TYPE_CHECKING:
    from treewright.orchestrator.workers.lean_access import LeanAccess
    from treewright.orchestrator.workers.worker import Worker

DEFAULT_SECONDS = 30.0
"""The time limit of a worker that is given to the scheduler and is not registered."""
_CACHE_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Tools:
    """The shared resources of workers: Lean sessions, and the ledger for lemma requests."""

    lean: LeanAccess
    ledger: Path | None = None


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy.

    Args:
        summary: What the strategy does, in one line.
        seconds: The default time limit for one goal.
        make: Makes the strategy's worker.
    """

    summary: str
    seconds: float
    make: Callable[[Tools], Worker]


STRATEGIES: Plugins[Strategy] = Plugins(
    "strategy",
    "treewright.strategies",
    {
        name: f"treewright.orchestrator.workers.{name}:strategy"
        for name in ("micro", "search", "copilot", "reprover", "sketch", "dojo")
    },
    lambda name, loaded: "" if isinstance(loaded, Strategy) else "it is no Strategy",
    reserved=[StrategyType.CACHE],
)
registered = STRATEGIES.names
find = STRATEGIES.get


def require_known(names: Iterable[str]) -> None:
    """Raise UsageError for a name that is not registered."""
    require_several(strategies=names)
    for name in names:
        if name not in registered():
            raise UsageError(f"there is no strategy {name!r}; there are {', '.join(registered())}")


def default_timeout(name: str) -> float:
    """Return the default time limit of a strategy for one goal."""
    if name == StrategyType.CACHE:
        return _CACHE_SECONDS
    return find(name).seconds if name in registered() else DEFAULT_SECONDS


def sort_names(names: Iterable[str]) -> list[str]:
    """Sort names in the order of the registry; other names come last, in their order."""
    require_several(strategies=names)
    order = {name: number for number, name in enumerate(registered())}
    return sorted(names, key=lambda name: order.get(name, len(order)))
