"""The view of a cell: its own part of the graph, at the time it was seen."""

from __future__ import annotations

from itertools import groupby

import pytest

from tests.cellview.running import start
from treewright.cellview.cell import Cell, is_settled
from treewright.cellview.runner import CellViewRunner
from treewright.proving.cell_settings import ALGOTYPES, Algotype, CellSettings, View
from treewright.search.andor.graph import Changes, Child, Node

RADIUS = 2


def in_view(cell: Cell, steps: int | None) -> set[int]:
    """Return the nodes below the cell's position, up to a number of steps."""
    seen = {cell.position.id}
    level: list[Node] = [cell.position]
    while level and steps != 0:
        level = [child for node in level for edge in node.edges for child in edge.children]
        level = [node for node in level if node.id not in seen]
        seen |= {node.id for node in level}
        steps = None if steps is None else steps - 1
    return seen


def disturb(runner: CellViewRunner, seen: set[int]) -> int:
    """Other numbers, and new goals, everywhere but in view."""
    outside = [node for node in list(runner.tree.nodes) if node.id not in seen]
    for node in outside:
        node.visits += 100
        node.total += 99.0
        for edge in node.edges:
            edge.visits += 50
            edge.total += 1.0
            edge.virtual += 3
        if not node.status:
            child = Child(f"new below {node.id}", 0.99)
            runner.tree.add_edge(node, "new", 0.9, [child], Changes())
    return len(outside)


def settled_cell(settings: CellSettings, world: int) -> tuple[CellViewRunner, Cell] | None:
    """A run with a cell that is free, stands below the root and has not stayed long."""
    runner = start(settings, seed=5, world=world)
    for _ in range(60):
        if runner.finished:
            return None
        turn = runner.step()
        assert turn.agent is not None
        cell = runner.cells[turn.agent]
        settled = cell.position.status or is_settled(cell.trail)
        if len(runner.tree.nodes) > 40 and len(cell.trail) >= 2 and not settled:
            return runner, cell
    return None


@pytest.mark.parametrize("algotype", ALGOTYPES)
@pytest.mark.parametrize(("view", "steps"), [("subtree", None), ("radius", RADIUS)])
def test_nodes_out_of_view_do_not_matter(algotype: Algotype, view: View, steps: int | None) -> None:
    settings = CellSettings(
        agents=3, inflight=3, algotypes=(algotype,), view=view, radius=RADIUS, refresh=1, stay=6
    )
    compared = 0
    for world in range(20):
        left, right = settled_cell(settings, world), settled_cell(settings, world)
        if left is None or right is None:
            continue
        seen = in_view(right[1], steps)
        if disturb(right[0], seen) < 5:
            continue
        horizon = None if steps is None else len(left[1].trail) + steps
        chosen = []
        for runner, cell in (left, right):
            leaf = cell.choose(runner.tick + 1, set())
            assert leaf is not None
            way = [node.id for node, _ in cell.path] + [leaf.id]
            chosen.append(way[: None if horizon is None else horizon + 1])
            runner.drain()
        assert chosen[0] == chosen[1]
        compared += 1
    assert compared >= 5


def test_nodes_in_view_matter() -> None:
    """The other half of the test above: it can tell."""
    settings = CellSettings(agents=3, inflight=3, refresh=1, stay=6)
    changed = 0
    for world in range(30):
        left, right = settled_cell(settings, world), settled_cell(settings, world)
        if left is None or right is None:
            continue
        disturb(right[0], set())
        here, there = (cell.choose(runner.tick + 1, set()) for runner, cell in (left, right))
        assert here is not None
        assert there is not None
        changed += here.key != there.key
    assert changed >= 3


def fork(runner: CellViewRunner) -> tuple[Node, Node]:
    """A root with two ways; the first looks better."""
    tree, changes = runner.tree, Changes()
    for name, value in (("good", 0.8), ("bad", 0.2)):
        tree.add_edge(tree.root, name, 0.5, [Child(name, value)], changes)
    tree.root.visits, tree.root.total = 4, 2.0
    tree.exhaust(tree.root, changes)
    good, bad = (edge.children[0] for edge in tree.root.edges)
    return good, bad


@pytest.mark.parametrize(("refresh", "sees"), [(10, False), (3, True)])
def test_a_belief_holds_until_it_is_old(refresh: int, sees: bool) -> None:
    runner = start(CellSettings(agents=1, inflight=1, stride=0, refresh=refresh))
    good, bad = fork(runner)
    cell = runner.cells[0]
    assert cell.choose(0, set()) is good
    first, second = runner.tree.root.edges
    first.visits, first.total = 10, 0.1  # others found out that it is no good
    second.visits, second.total = 10, 9.0
    assert cell.choose(2, set()) is good
    assert cell.choose(5, set()) is (bad if sees else good)


def test_a_settled_way_is_felt_at_once() -> None:
    runner = start(CellSettings(agents=1, inflight=1, stride=0, refresh=1000))
    good, bad = fork(runner)
    cell = runner.cells[0]
    assert cell.choose(0, set()) is good
    runner.tree.exhaust(good, Changes())
    assert cell.choose(1, set()) is bad


def test_a_taken_node_is_left_to_the_other() -> None:
    runner = start(CellSettings(agents=2, inflight=2, stride=0, refresh=1000))
    good, bad = fork(runner)
    assert runner.cells[0].choose(0, set()) is good
    assert runner.cells[1].choose(0, {good.id}) is bad
    assert runner.cells[1].choose(0, {good.id, bad.id}) is None


def test_a_cell_stays_and_goes_back() -> None:
    runner = start(CellSettings(agents=1, inflight=1, stride=2, stay=4))
    stands: list[int] = []
    for _ in range(80):
        if runner.finished:
            break
        runner.step()
        stands.append(runner.cells[0].position.id)
    lengths = [len(list(turns)) for stand, turns in groupby(stands) if stand != 0]
    assert max(lengths) == 3  # the fourth turn there ends at the root
    assert lengths.count(3) > 5


def test_a_cell_with_a_radius_moves_on_when_it_must_see_further() -> None:
    settings = CellSettings(agents=1, inflight=1, stride=1, stay=50, view="radius", radius=2)
    runner = start(settings)
    depths: set[int] = set()
    for _ in range(150):
        if runner.finished:
            break
        turn = runner.step()
        cell = runner.cells[0]
        if cell.trail:
            assert len(turn.path) - len(cell.trail) < 2
        depths.add(len(cell.trail))
    assert max(depths) > 4
