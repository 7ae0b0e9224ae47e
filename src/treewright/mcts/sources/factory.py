"""The tactic source that a run's settings describe."""

from __future__ import annotations

from treewright.mcts.settings import Settings
from treewright.mcts.sources.base import TacticSource
from treewright.mcts.sources.core import CoreTactics


def build_source(settings: Settings) -> TacticSource:
    return CoreTactics()
