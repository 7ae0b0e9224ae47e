"""Strategies by name: those in the box, and those that other packages register.

A strategy is one file with a `Strategy` in it. Ours are named below; another package names its own
under the entry-point group `treewright.strategies`. Both are loaded when they are used. The command
line, the scheduler, `doctor` and the dashboard learn from here which there are; a ledger may name
others, of a plug-in that is gone or of a newer treewright: they are shown, and not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from treewright.kernel.errors import UsageError, require_several
from treewright.orchestrator.types import StrategyType

if TYPE_CHECKING:
    from treewright.orchestrator.workers.base import Worker
    from treewright.orchestrator.workers.lean_access import LeanAccess
    from treewright.orchestrator.workers.sketch import LemmaRequests

GROUP = "treewright.strategies"
DEFAULT_SECONDS = 30.0
"""For one goal, of a worker that was given by hand and has no registered strategy."""
_CACHE_SECONDS = 8.0
_HERE = "treewright.orchestrator.workers"
_BUILT_IN = {
    "micro": f"{_HERE}.micro:strategy",
    "search": f"{_HERE}.search:strategy",
    "copilot": f"{_HERE}.copilot:strategy",
    "reprover": f"{_HERE}.reprover:strategy",
    "sketch": f"{_HERE}.sketch:strategy",
    "dojo": f"{_HERE}.dojo:strategy",
}


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


@lru_cache(maxsize=1)
def registered() -> dict[str, EntryPoint]:
    """By name, those in the box first. A plug-in cannot take a name that is in use."""
    found = {name: EntryPoint(name, value, GROUP) for name, value in _BUILT_IN.items()}
    for entry in entry_points(group=GROUP):
        if entry.name in found or entry.name == StrategyType.CACHE:
            taken = f"calls its strategy {entry.name!r}, as ours"
            raise UsageError(f"the plug-in {entry.value} {taken}")
        found[entry.name] = entry
    return found


def _loaded(entry: EntryPoint) -> Strategy:
    try:
        loaded = entry.load()
    except Exception as error:  # somebody else's module may raise anything
        problem = f"{type(error).__name__}: {error}"
        raise UsageError(f"the strategy {entry.name!r} cannot be loaded: {problem}") from None
    if not isinstance(loaded, Strategy):
        raise UsageError(f"the strategy {entry.name!r} is no Strategy: {entry.value}")
    return loaded


def find(name: str) -> Strategy:
    """The strategy of that name, as `--strategy` gives it."""
    require_known([name])
    return _loaded(registered()[name])


def require_known(names: Iterable[str]) -> None:
    """Refuses a name that nobody has registered."""
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
