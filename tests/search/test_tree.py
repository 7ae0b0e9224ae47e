"""The tree's statistics equal a recount after any sequence of events."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search.invariants import check
from treewright.search.tree import LARGEST_VALUE, Node, Status, Tree

EVENT = st.tuples(
    st.integers(0, 50),
    st.one_of(st.none(), st.floats(-1e6, 1e6), st.sampled_from([0.0, 1e308, -1e308])),
    st.booleans(),
    st.booleans(),
    st.floats(0.1, 3.0),
    st.booleans(),
)


@given(
    events=st.lists(EVENT, max_size=60),
    branching=st.sampled_from([None, 1, 3]),
    sums_subtrees=st.booleans(),
)
def test_statistics_are_those_of_a_recount(events, branching, sums_subtrees) -> None:
    tree = Tree(branching=branching, sums_subtrees=sums_subtrees)
    pending: list[int] = []
    for pick, value, expandable, exhausts, prior, settles_last in events:
        if tree.growing:
            parent = tree.growing[pick % len(tree.growing)]
            pending.append(tree.reserve(parent.number).number)
        if pending and (settles_last or len(pending) > 4):
            number = pending.pop(pick % len(pending))
            node = None
            if value is not None:
                above = tree.branches[number].parent
                assert above is not None
                node = Node(number, above.node, score=value, value=value)
            tree.settle(number, node, expandable=expandable, prior=prior, exhausts_parent=exhausts)
        check(tree)


def test_an_outcome_is_told_once_and_a_full_node_takes_no_child() -> None:
    tree = Tree(branching=1)
    tree.reserve(0)
    with pytest.raises(ValueError, match="no further child"):
        tree.reserve(0)
    tree.settle(1, Node(1, tree.root.node, score=1.0, value=1.0))
    with pytest.raises(ValueError, match="outcome already"):
        tree.settle(1, None)


def test_the_checker_finds_a_wrong_count() -> None:
    tree = Tree()
    tree.reserve(0)
    tree.settle(1, Node(1, tree.root.node, score=1.0, value=1.0))
    check(tree)
    tree.root.total += 0.5
    with pytest.raises(AssertionError, match="total"):
        check(tree)


@pytest.mark.parametrize("field", ["visits", "squares", "peak", "growing", "child_total"])
def test_the_checker_finds_a_wrong_statistic(field: str) -> None:
    tree = Tree()
    tree.reserve(0)
    tree.settle(1, Node(1, tree.root.node, score=1.0, value=1.0))
    check(tree)
    setattr(tree.root, field, getattr(tree.root, field) + 1)
    with pytest.raises(AssertionError, match=field):
        check(tree)


def test_values_that_squares_cannot_hold_are_bounded() -> None:
    tree = Tree()
    tree.reserve(0)
    tree.settle(1, Node(1, tree.root.node, score=-1e308, value=-1e308))
    assert tree.branches[1].value == -LARGEST_VALUE
    assert tree.root.squares < float("inf")


def test_a_node_refers_upwards_only() -> None:
    """So that a task can be sent to another machine without the tree."""
    tree = Tree(Node(0, None, data="start"))
    tree.reserve(0)
    child = tree.settle(1, Node(1, tree.root.node, score=1.0, value=1.0, data="one"))
    assert child.status is Status.OPEN
    assert child.node is not None
    assert [node.data for node in child.node.path()] == ["start", "one"]
    assert not hasattr(child.node, "children")


def test_a_deep_path_can_be_sent() -> None:
    node = Node(0, None, data="start")
    for number in range(1, 5000):
        node = Node(number, node, score=1.0, value=1.0, data=number)
    there = pickle.loads(pickle.dumps(node))
    assert [each.data for each in there.path()] == [each.data for each in node.path()]
    assert (there.number, there.depth, there.score) == (4999, 4999, 1.0)
