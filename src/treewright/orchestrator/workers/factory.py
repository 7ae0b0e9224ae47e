"""All strategies, ready or not: who cannot run says so by its probe."""

from __future__ import annotations

from treewright.orchestrator.config import OrchestratorConfig
from treewright.orchestrator.lean_access import LeanAccess
from treewright.orchestrator.types import ARMS, StrategyType
from treewright.orchestrator.workers.base import Worker
from treewright.orchestrator.workers.micro import MicroWorker
from treewright.orchestrator.workers.stub import StubWorker


def make_workers(config: OrchestratorConfig, lean: LeanAccess) -> list[Worker]:
    """The workers of the configured portfolio, in the order of `StrategyType`."""
    if config.profile == 0:
        return [StubWorker(strategy) for strategy in config.portfolio]
    made = {worker.strategy: worker for worker in _all(lean)}
    return [made[s] for s in ARMS if s in config.portfolio and s in made]


def _all(lean: LeanAccess) -> list[Worker]:
    return [MicroWorker(lean)]


__all__ = ["StrategyType", "make_workers"]
