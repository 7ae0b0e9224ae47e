"""Which runner a run's settings name, and what it expands with. No way from one to the other."""

from __future__ import annotations

from treewright.mcts.cellview.runner import CellViewRunner
from treewright.mcts.cellview.settings import CellSettings
from treewright.mcts.centralized import CentralizedEngine
from treewright.mcts.environment import Environment
from treewright.mcts.expansion import Expander, Recorded
from treewright.mcts.search import Runner
from treewright.mcts.settings import Settings
from treewright.mcts.sources.base import TacticSource
from treewright.mcts.values import estimate


def make_expander(
    settings: Settings, environment: Environment, source: TacticSource, recorded: Recorded
) -> Expander:
    return Expander(
        environment,
        source,
        estimate,
        batch=settings.batch,
        discount=settings.policy.discount,
        recorded=recorded,
    )


def make_runner(settings: Settings, expander: Expander) -> Runner:
    if settings.mode == "centralized":
        return CentralizedEngine(expander, settings.policy)
    cells = settings.cells or CellSettings()
    return CellViewRunner(expander, cells, settings.seed, settings.policy)
