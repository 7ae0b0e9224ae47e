"""One undamaged cell compared with the centralized engine: same proofs; where the order differs."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import treewright.cellview as package
from tests.cellview.running import expander_of, lines
from treewright.cellview.runner import CellViewRunner
from treewright.proving.cell_settings import CellSettings
from treewright.proving.centralized import CentralizedEngine
from treewright.proving.records import Iteration
from treewright.search.andor.graph import Status
from treewright.search.andor.policies.mcts import Mcts

ONE = CellSettings(agents=1, inflight=1)


def what_was_done(written: list[Iteration]) -> list[tuple[object, ...]]:
    return [(line.path, line.attempts, line.reason, line.value) for line in written]


def test_the_same_goals_are_proved() -> None:
    """In worlds that can be searched to the end.

    They have enough goals that none occurs twice: which edge closes a circle, and is refused,
    depends on which one came first, so there two orders of search can end differently.
    """
    proved = 0
    for world in range(150):
        shape = {"size": 10**9, "closing": 0.1, "failing": 0.8}
        central = CentralizedEngine(expander_of(world, **shape), Mcts())
        lines(central, 3000)
        cell = CellViewRunner(expander_of(world, **shape), ONE, seed=0)
        lines(cell, 3000)
        assert central.finished
        assert cell.finished
        assert cell.tree.root.status is central.tree.root.status
        proved += cell.tree.root.status is Status.SOLVED
    assert 30 < proved < 120  # both answers occur, so that the comparison says something


@pytest.mark.parametrize("view", ["subtree", "radius"])
def test_a_cell_that_never_stays_equals_the_engine(view: str) -> None:
    """With `stay` 1 it starts from the root with fresh eyes every time."""
    settings = CellSettings(agents=1, inflight=1, stay=1, view=view)  # pyright: ignore[reportArgumentType]
    for world in range(8):
        central = lines(CentralizedEngine(expander_of(world), Mcts()), 150)
        cell = lines(CellViewRunner(expander_of(world), settings, seed=world), 150)
        assert what_was_done(cell) == what_was_done(central)


def test_the_order_differs_where_the_cell_stays_in_its_subtree() -> None:
    """The engine goes back to the root for every simulation, a cell only when its stay is over.

    So at the first difference the cell works below where it stood the turn before, and the engine
    has gone to another part of the tree.
    """
    differed = 0
    for world in range(8):
        central = lines(CentralizedEngine(expander_of(world), Mcts()), 150)
        cell = lines(CellViewRunner(expander_of(world), ONE, seed=0), 150)
        for before, here, there in zip(cell, cell[1:], central[1:], strict=False):
            if here.path != there.path:
                differed += 1
                stand = before.path[: ONE.stride + 1]
                assert here.path[: ONE.stride + 1] == stand
                assert there.path[: ONE.stride + 1] != stand
                break
    assert differed >= 5


def test_the_runner_does_not_know_the_engine() -> None:
    files = sorted(Path(package.__file__).parent.glob("*.py"))
    imported = {
        node.module
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    }
    assert "treewright.cellview.cell" in imported
    assert "treewright.proving.centralized" not in imported
