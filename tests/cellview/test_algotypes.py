"""Each algotype does what its name says."""

from __future__ import annotations

from collections import Counter
from random import Random

from tests.cellview.running import run, start
from treewright.cellview.algotypes import rules_of
from treewright.proving.cell_settings import ALGOTYPES, Algotype, CellSettings
from treewright.search.andor.graph import Changes, Child, Edge, Graph, Node
from treewright.search.andor.policies.mcts import Mcts, select_edge

POLICY = Mcts()


def node_with(*ways: tuple[float | None, int, float]) -> Node:
    """A node with edges of a prior, visits and a mean each."""
    tree, changes = Graph("root"), Changes()
    for number, (prior, visits, mean) in enumerate(ways):
        edge = tree.add_edge(tree.root, f"t{number}", prior, [Child(str(number), mean)], changes)
        assert edge is not None
        edge.visits, edge.total = visits, visits * mean
    tree.root.visits = sum(visits for _, visits, _ in ways)
    tree.root.total = sum(visits * mean for _, visits, mean in ways)
    return tree.root


def picked(algotype: Algotype, node: Node, seed: int = 0) -> Edge:
    pick, _ = rules_of(algotype, Random(seed))
    return pick(node, node.live, POLICY)


def widens(algotype: Algotype, node: Node, seed: int = 0) -> bool:
    _, wants = rules_of(algotype, Random(seed))
    return wants(node, POLICY)


def test_puct_goes_by_priors_and_ucb_by_rarity() -> None:
    node = node_with((0.9, 6, 0.5), (0.05, 1, 0.5))
    assert picked("puct", node).id == 0
    assert picked("ucb", node).id == 1


def test_both_are_the_rules_of_the_centralized_engine() -> None:
    rng = Random(1)
    for _ in range(50):
        ways = [(rng.random(), rng.randrange(5), rng.random()) for _ in range(4)]
        with_priors = node_with(*ways)
        without = node_with(*[(None, visits, mean) for _, visits, mean in ways])
        assert picked("puct", with_priors) is select_edge(with_priors, POLICY)
        assert picked("ucb", without) is select_edge(without, POLICY)
        assert picked("puct", without) is picked("ucb", without)


def test_best_first_does_not_explore() -> None:
    node = node_with((0.01, 40, 0.6), (0.9, 0, 0.55), (0.9, 1, 0.5))
    assert picked("best_first", node).id == 0
    assert picked("puct", node).id != 0
    assert picked("ucb", node).id != 0


def test_best_first_counts_reservations_as_losses() -> None:
    node = node_with((0.5, 1, 0.6), (0.5, 1, 0.5))
    node.edges[0].virtual = 1
    assert picked("best_first", node).id == 1


def test_depth_first_takes_the_first_way_and_never_widens() -> None:
    node = node_with((0.1, 30, 0.01), (0.9, 0, 0.9))
    assert picked("depth_first", node).id == 0
    assert not widens("depth_first", node)
    assert widens("puct", node)


def test_random_takes_all_ways_alike_and_something_new_like_another_way() -> None:
    node = node_with((0.9, 30, 0.9), (0.1, 0, 0.1), (0.1, 0, 0.1))
    pick, wants = rules_of("random", Random(3))
    taken = Counter(pick(node, node.live, POLICY).id for _ in range(3000))
    assert all(900 < taken[number] < 1100 for number in range(3))
    new = sum(wants(node, POLICY) for _ in range(3000))
    assert 650 < new < 850


def test_depth_first_goes_deeper_than_the_others() -> None:
    deepest = {
        algotype: max(
            len(line.path)
            for line in run(CellSettings(agents=1, inflight=1, algotypes=(algotype,)), 60)
        )
        for algotype in ALGOTYPES
    }
    assert all(deepest["depth_first"] > deepest[other] for other in ("puct", "ucb", "random"))


def test_depth_first_turns_back_at_its_limit() -> None:
    """It goes down `depth_limit` steps from where it stands, then tries others on its way back."""
    settings = CellSettings(
        agents=1, inflight=1, algotypes=("depth_first",), stride=0, depth_limit=3, stay=1
    )
    runner = start(settings)
    depths = Counter(len(runner.step().path) for _ in range(25))
    assert max(depths) == 3
    assert depths[3] > 5


def test_cells_follow_the_pattern() -> None:
    settings = CellSettings(agents=6, algotypes=("ucb", "ucb", "depth_first"))
    runner = start(settings)
    kinds = [cell.algotype for cell in runner.cells]
    assert kinds == ["ucb", "ucb", "depth_first"] * 2
    for _ in range(30):
        turn = runner.step()
        assert turn.agent is not None
        assert turn.algotype == kinds[turn.agent]
