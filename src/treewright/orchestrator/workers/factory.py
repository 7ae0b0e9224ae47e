"""Making the workers of strategies: real ones, stubs, and placeholders for unavailable ones."""

from __future__ import annotations

import time
from pathlib import Path

from treewright.kernel.errors import UsageError
from treewright.orchestrator import strategies
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.strategies import Tools
from treewright.orchestrator.types import Goal, Result
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.worker import UNAVAILABLE, Availability, Worker, failed


class StubWorker:
    """A stub strategy of profile 0: it proves nothing, says so, and needs no Lean."""

    def __init__(self, strategy: str) -> None:
        self.strategy = strategy

    def probe(self) -> Availability:
        """Return that the stub is available."""
        return Availability(True, "a stub that never proves anything (profile 0)")

    async def run(self, goal: Goal, timeout: float) -> Result:
        """Fail at once."""
        return Result(False, self.strategy, error="stub worker: nothing was tried")


class UnavailableWorker:
    """Stands for a strategy without a usable worker; its probe gives the reason."""

    def __init__(self, strategy: str, why: str) -> None:
        self.strategy = strategy
        self._why = why

    def probe(self) -> Availability:
        """Return the reason."""
        return Availability(False, self._why, "repair or uninstall the package it comes from")

    async def run(self, goal: Goal, timeout: float) -> Result:
        """Fail with the reason."""
        return failed(self.strategy, self._why, time.monotonic(), UNAVAILABLE)


def make_workers(config: OrchestratorConfig, lean: LeanAccess, ledger: Path) -> list[Worker]:
    """Return the workers of the configured portfolio, in the order of the registry."""
    chosen = strategies.sort_names(config.portfolio)
    if config.profile == 0:
        return [StubWorker(strategy) for strategy in chosen]
    tools = Tools(lean, ledger)
    return [_make_worker(name, tools) for name in chosen]


def all_workers(lean: LeanAccess) -> list[Worker]:
    """Return the workers of every registered strategy; they request no lemmas."""
    return [_make_worker(name, Tools(lean)) for name in strategies.registered()]


def _make_worker(name: str, tools: Tools) -> Worker:
    try:
        worker = strategies.find(name).make(tools)
    except UsageError as error:
        return UnavailableWorker(name, str(error))
    except Exception as error:  # a plug-in's code may raise anything
        return UnavailableWorker(
            name, f"its worker cannot be made: {type(error).__name__}: {error}"
        )
    if worker.strategy != name:
        return UnavailableWorker(name, f"its worker calls itself {worker.strategy!r}")
    return worker
