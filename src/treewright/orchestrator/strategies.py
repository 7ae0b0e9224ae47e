"""Strategies by name: those in the box, and those that other packages register.

A strategy is one file with a `Strategy` in it. Ours are named below; another package names its own
under the entry-point group `treewright.strategies`. Both are loaded when they are used. The command
line, the scheduler, `doctor` and the dashboard learn from here which there are; a ledger may name
others, of a plug-in that is gone or of a newer treewright: they are shown, and not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treewright.kernel.errors import UsageError, require_several
from treewright.kernel.plugins import Plugins
from treewright.orchestrator.types import StrategyType

if TYPE_CHECKING:
    from treewright.orchestrator.workers.base import Worker
    from treewright.orchestrator.workers.lean_access import LeanAccess
    from treewright.orchestrator.workers.sketch import LemmaRequests

DEFAULT_SECONDS = 30.0
"""For one goal, of a worker that was given by hand and has no registered strategy."""
_CACHE_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Tools:
    """What a worker may use: Lean sessions that all share, and where lemmas are asked for."""

    lean: LeanAccess
    lemmas: LemmaRequests | None = None


@dataclass(frozen=True, slots=True)
class Strategy:
    """What it does in a line, its time for one goal unless configured, what makes its worker."""

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
    """The time of a strategy for one goal, unless it is configured."""
    if name == StrategyType.CACHE:
        return _CACHE_SECONDS
    return find(name).seconds if name in registered() else DEFAULT_SECONDS


def sort_names(names: Iterable[str]) -> list[str]:
    """Those that are registered in their order, then the others as they came."""
    require_several(strategies=names)
    order = {name: number for number, name in enumerate(registered())}
    return sorted(names, key=lambda name: order.get(name, len(order)))
