"""Which runner a run's settings name. There is no way from one to the other."""

from __future__ import annotations

from treewright.mcts.cellview.runner import CellViewRunner
from treewright.mcts.cellview.settings import CellSettings
from treewright.mcts.centralized import CentralizedEngine
from treewright.mcts.expansion import Expander
from treewright.mcts.search import Runner
from treewright.mcts.settings import Settings


def make_runner(settings: Settings, expander: Expander) -> Runner:
    if settings.mode == "centralized":
        return CentralizedEngine(expander, settings.policy)
    cells = settings.cells or CellSettings()
    return CellViewRunner(expander, cells, settings.seed, settings.policy)
