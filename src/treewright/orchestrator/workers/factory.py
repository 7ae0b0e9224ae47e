"""All strategies, ready or not: who cannot run says so by its probe."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from treewright.kernel.errors import UsageError
from treewright.orchestrator import strategies
from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.marketplace.tickets import Ticket
from treewright.orchestrator.strategies import Tools
from treewright.orchestrator.types import Goal, Result
from treewright.orchestrator.workers.base import UNAVAILABLE, Availability, Worker, failed
from treewright.orchestrator.workers.lean_access import LeanAccess
from treewright.orchestrator.workers.stub import StubWorker


class Tickets:
    """The marketplace in a ledger's file, opened for each call: requests are rare."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger

    async def request_lemma(self, goal: str, **details: Any) -> str:
        from treewright.orchestrator.marketplace.market import Marketplace

        with Marketplace(self._ledger) as marketplace:
            return await marketplace.request_lemma(goal, **details)

    async def get_ticket(self, ticket_id: str) -> Ticket:
        from treewright.orchestrator.marketplace.market import Marketplace

        with Marketplace(self._ledger) as marketplace:
            return await marketplace.get_ticket(ticket_id)


class Missing:
    """In the place of a strategy whose worker cannot be made: it says why, and runs nothing."""

    def __init__(self, strategy: str, why: str) -> None:
        self.strategy = strategy
        self._why = why

    def probe(self) -> Availability:
        return Availability(False, self._why, "repair or uninstall the package it comes from")

    async def run(self, goal: Goal, timeout: float) -> Result:
        return failed(self.strategy, self._why, time.monotonic(), UNAVAILABLE)


def make_workers(config: OrchestratorConfig, lean: LeanAccess, ledger: Path) -> list[Worker]:
    """The workers of the configured portfolio, in the order of the registry."""
    chosen = strategies.in_order(config.portfolio)
    if config.profile == 0:
        return [StubWorker(strategy) for strategy in chosen]
    tools = Tools(lean, Tickets(ledger))
    return [_worker(name, tools) for name in chosen]


def all_workers(lean: LeanAccess) -> list[Worker]:
    """Of every strategy that is registered; lemma tickets are written by none of them."""
    return [_worker(name, Tools(lean)) for name in strategies.known()]


def _worker(name: str, tools: Tools) -> Worker:
    try:
        worker = strategies.find(name).make(tools)
    except UsageError as error:
        return Missing(name, str(error))
    except Exception as error:  # somebody else's code may raise anything
        return Missing(name, f"its worker cannot be made: {type(error).__name__}: {error}")
    if worker.strategy != name:
        return Missing(name, f"its worker calls itself {worker.strategy!r}")
    return worker
