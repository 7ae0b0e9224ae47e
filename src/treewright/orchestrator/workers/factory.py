"""All strategies, ready or not: who cannot run says so by its probe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.marketplace.tickets import Ticket
from treewright.orchestrator.types import ARMS
from treewright.orchestrator.workers.base import Worker
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


def make_workers(config: OrchestratorConfig, lean: LeanAccess, ledger: Path) -> list[Worker]:
    """The workers of the configured portfolio, in the order of `StrategyType`."""
    if config.profile == 0:
        return [StubWorker(strategy) for strategy in config.portfolio]
    made = {worker.strategy: worker for worker in all_workers(lean, ledger)}
    return [made[s] for s in ARMS if s in config.portfolio and s in made]


def all_workers(lean: LeanAccess, ledger: Path | None = None) -> list[Worker]:
    """`ledger` is where lemma tickets go; without one none are written."""
    # Imported here: stubs, and whoever brings workers of their own, do without.
    from treewright.orchestrator.workers.copilot import CopilotWorker
    from treewright.orchestrator.workers.dojo import DojoWorker
    from treewright.orchestrator.workers.micro import MicroWorker
    from treewright.orchestrator.workers.reprover import ReproverWorker
    from treewright.orchestrator.workers.search import SearchWorker
    from treewright.orchestrator.workers.sketch import SketchWorker

    return [
        MicroWorker(lean),
        SearchWorker(lean),
        CopilotWorker(),
        ReproverWorker(lean),
        SketchWorker(lean, lemmas=Tickets(ledger) if ledger is not None else None),
        DojoWorker(),
    ]
