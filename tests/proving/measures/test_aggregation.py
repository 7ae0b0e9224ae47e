"""Aggregation: known answers, invariances, its null."""

from __future__ import annotations

import numpy as np
import pytest

from tests.proving.traces import iterations, search
from treewright.proving.measures.aggregation import aggregation, expanders, neighbours, of_labels

TREE = [((node - 1) // 2, node) for node in range(1, 63)]


def test_all_neighbours_alike_by_half() -> None:
    half = {node: "ucb" if _in_left_half(node) else "random" for node in range(1, 63)}
    found = of_labels(half, TREE, seed=1, permutations=999)
    assert (found.pairs, found.nodes, found.share) == (60, 62, 1.0)
    assert found.p == 1 / 1000
    assert found.z is not None
    assert found.z > 5
    assert found.null_mean == pytest.approx(30 / 61, abs=0.02)


def test_neighbours_always_different() -> None:
    layers = {node: "ucb" if (node + 1).bit_length() % 2 else "random" for node in range(63)}
    found = of_labels(layers, TREE, seed=1, permutations=999)
    assert found.share == 0.0
    assert found.p == 1.0
    assert found.null_low is not None
    assert found.null_low > 0


def test_the_null_is_exact_for_a_case_done_by_hand() -> None:
    """Two of three nodes of a chain are alike: 1/3 of the deals put them next to each other twice
    over, so the mean share of equal neighbours is (0 + 1/2 + 1/2) / 3."""
    found = of_labels({0: "a", 1: "a", 2: "b"}, [(0, 1), (1, 2)], seed=0, permutations=6000)
    assert found.share == 0.5
    assert found.null_mean == pytest.approx(1 / 3, abs=0.02)
    assert found.p == pytest.approx(2 / 3, abs=0.03)


def test_names_of_labels_and_nodes_do_not_matter() -> None:
    draw = np.random.default_rng(3)
    labels = {node: ("ucb", "random", "puct")[draw.integers(3)] for node in range(63)}
    renamed = {node + 100: "x" + label for node, label in labels.items()}
    moved = [(a + 100, b + 100) for a, b in TREE]
    first, second = of_labels(labels, TREE, 7, 499), of_labels(renamed, moved, 7, 499)
    assert (first.share, first.pairs) == (second.share, second.pairs)
    assert first.p == pytest.approx(second.p, abs=0.06)


@pytest.mark.parametrize(
    ("labels", "why"),
    [({}, "no two neighbours were expanded"), ({0: "a"}, "no two neighbours were expanded")],
)
def test_without_neighbours_it_is_undefined(labels: dict[int, str], why: str) -> None:
    found = of_labels(labels, TREE, 0, 9)
    assert (found.share, found.p, found.z, found.undefined) == (None, None, None, why)


def test_a_single_algotype_has_no_null() -> None:
    found = of_labels(dict.fromkeys(range(63), "ucb"), TREE, 0, 9)
    assert (found.share, found.p, found.z) == (1.0, None, None)
    assert found.undefined == "only one algotype expanded nodes: ucb"


def test_a_null_that_cannot_vary_has_no_z() -> None:
    found = of_labels({0: "a", 1: "b"}, [(0, 1)], 0, 99)
    assert (found.share, found.z, found.p) == (0.0, None, 1.0)


def test_p_values_are_not_too_small_under_the_null() -> None:
    draw = np.random.default_rng(21)
    ps = np.array(
        [
            of_labels({n: "ab"[draw.integers(2)] for n in range(63)}, TREE, seed, 99).p
            for seed in range(200)
        ]
    )
    assert 0.42 < ps.mean() < 0.62, "ties push it a little above one half"
    assert (ps <= 0.05).mean() < 0.1
    assert (ps <= 0.25).mean() == pytest.approx(0.22, abs=0.1)


def test_of_a_real_trace() -> None:
    turns = iterations(search(5, agents=4, limit=80))
    labels = expanders(turns)
    first = {}
    for turn in turns:
        first.setdefault(turn.node, turn.algotype)
    assert labels == first
    pairs = neighbours(turns)
    assert len(pairs) == len(set(pairs))
    edges = {
        (t.node, c) for t in turns for a in t.attempts if a.edge is not None for c in a.children
    }
    assert set(pairs) == edges
    found = aggregation(turns)
    assert found.pairs == sum(a in labels and b in labels for a, b in pairs) > 10
    assert found == aggregation(turns)


def test_a_centralized_trace_has_no_algotypes() -> None:
    found = aggregation(iterations(search(5, limit=80)))
    assert (found.nodes, found.undefined) == (0, "no two neighbours were expanded")


def _in_left_half(node: int) -> bool:
    while node > 2:
        node = (node - 1) // 2
    return node == 1
