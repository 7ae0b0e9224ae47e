"""Runs of cells over the synthetic world, for comparing their iterations."""

from __future__ import annotations

from tests.proving.synthetic import world_expander
from treewright.cellview.runner import CellViewRunner
from treewright.proving.cell_settings import CellSettings
from treewright.proving.expansion import Expander
from treewright.proving.records import Iteration
from treewright.proving.search import Runner, Stamp, iteration_line

HARD = {"size": 200, "closing": 0.02, "failing": 0.4}
"""A world with a root that stays open for a while."""


def start(settings: CellSettings, seed: int = 0, world: int = 1, **shape: float) -> CellViewRunner:
    expander = world_expander(world, **(shape or HARD))  # pyright: ignore[reportArgumentType]
    return CellViewRunner(expander, settings, seed)


def lines(runner: Runner, steps: int) -> list[Iteration]:
    """Return at most `steps` iterations as a trace would have them, without the clock."""
    written: list[Iteration] = []
    while not runner.finished and len(written) < steps:
        turn = runner.step()
        stamp = Stamp(0, "", len(written) + 1, 0)
        written.append(iteration_line(turn, runner.tree, runner.expander.attempts, stamp))
    return written


def run(settings: CellSettings, steps: int = 150, seed: int = 0, world: int = 1) -> list[Iteration]:
    runner = start(settings, seed, world)
    written = lines(runner, steps)
    runner.drain()
    runner.tree.check()
    return written


def expander_of(world: int, **shape: float) -> Expander:
    return world_expander(world, **(shape or HARD))  # pyright: ignore[reportArgumentType]
