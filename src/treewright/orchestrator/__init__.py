"""Closing many Lean goals with a portfolio of strategies, on a machine that is also used otherwise.

Goals enter: from Python, from a bank, or from the sorries of a project. Results leave, with a
ledger of all attempts; only the replay check turns a strategy's claim into a proof.

The package may import `proving`, `premises`, `lean`, `llm`, `search` and `kernel`, and not `tree`.
Read `scheduler.py` first, then `scheduling/attempt_runner.py` and `workers/worker.py`.
"""

from typing import TYPE_CHECKING

from treewright.kernel.exports import lazy_exports

if TYPE_CHECKING:
    from treewright.orchestrator.http_documents import health as read_health
    from treewright.orchestrator.http_documents import marketplace as read_marketplace
    from treewright.orchestrator.http_documents import stats as read_stats
    from treewright.orchestrator.marketplace.market import Marketplace
    from treewright.orchestrator.marketplace.tickets import TicketStatus
    from treewright.orchestrator.scheduler import Scheduler
    from treewright.orchestrator.scheduling.dispatch import open_backend
    from treewright.orchestrator.strategies import Strategy, Tools
    from treewright.orchestrator.types import Goal, Result
    from treewright.orchestrator.workers.worker import Availability, LeanWorker

_PUBLIC = {
    "Availability": ("treewright.orchestrator.workers.worker", "Availability"),
    "Goal": ("treewright.orchestrator.types", "Goal"),
    "LeanWorker": ("treewright.orchestrator.workers.worker", "LeanWorker"),
    "Marketplace": ("treewright.orchestrator.marketplace.market", "Marketplace"),
    "Result": ("treewright.orchestrator.types", "Result"),
    "Scheduler": ("treewright.orchestrator.scheduler", "Scheduler"),
    "Strategy": ("treewright.orchestrator.strategies", "Strategy"),
    "TicketStatus": ("treewright.orchestrator.marketplace.tickets", "TicketStatus"),
    "Tools": ("treewright.orchestrator.strategies", "Tools"),
    "open_backend": ("treewright.orchestrator.scheduling.dispatch", "open_backend"),
    "read_health": ("treewright.orchestrator.http_documents", "health"),
    "read_marketplace": ("treewright.orchestrator.http_documents", "marketplace"),
    "read_stats": ("treewright.orchestrator.http_documents", "stats"),
}

__all__ = [
    "Availability",
    "Goal",
    "LeanWorker",
    "Marketplace",
    "Result",
    "Scheduler",
    "Strategy",
    "TicketStatus",
    "Tools",
    "open_backend",
    "read_health",
    "read_marketplace",
    "read_stats",
]


if not TYPE_CHECKING:  # type checkers read the imports above
    __getattr__ = lazy_exports(__name__, _PUBLIC)
