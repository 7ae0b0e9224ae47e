"""MCTS looks at few of many children, and chooses as if it had looked at all of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from treewright.search import policies
from treewright.search.sequencer import Outcome, Sequencer, stream
from treewright.search.tree import Branch, Node, Tree


def plain(policy: policies.Mcts, tree: Tree) -> int | None:
    """The node that MCTS grows, by the scores of all children in which something can grow."""
    branch = tree.root
    if not branch.growing:
        return None
    low, span = tree.lowest, (tree.highest - tree.lowest) or 1.0
    while True:
        visited = branch.visits + branch.reserved
        grows = tree.can_grow(branch)
        allowed = policy.widen_scale * (visited + 1) ** policy.widen_power
        if grows and len(branch.children) + branch.child_reserved < allowed:
            return branch.number
        open_children = [child for child in branch.children if child.growing]
        if not open_children:
            return branch.number
        scale = policy.exploration * math.sqrt(math.log(visited + 1))

        def score(child: Branch, scale: float = scale) -> float:
            return (child.peak - low) / span + scale / math.sqrt(child.visits + child.reserved)

        branch = max(open_children, key=score)  # the first of equals


VALUE = st.one_of(
    st.none(), st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]), st.floats(-1e300, 1e300)
)
OUTCOME = st.tuples(VALUE, st.sampled_from([True] * 9 + [False]), st.integers(0, 99))


@settings(deadline=None)
@given(
    outcomes=st.lists(OUTCOME, min_size=1, max_size=60),
    exploration=st.sampled_from([0.0, 0.02, 0.1, 1.0]),
    widen=st.sampled_from([(17.0, 0.0), (10.0, 0.2), (30.0, 0.0)]),
    branching=st.sampled_from([None, 16, 20]),
    lookahead=st.integers(1, 4),
    is_live=st.booleans(),
)
def test_the_choice_is_that_of_a_look_at_all(
    outcomes, exploration, widen, branching, lookahead, is_live
) -> None:
    policy = policies.Mcts(exploration=exploration, widen_scale=widen[0], widen_power=widen[1])
    tree = Tree(branching=branching)
    sequencer = Sequencer(tree, policy, 1, "live" if is_live else "fixed", lookahead)
    pending: list[Branch] = []
    for step in range(240):
        value, expandable, pick = outcomes[step * 7 % len(outcomes)]
        if pick < 5 and tree.growing:
            with tree.without([tree.growing[pick % len(tree.growing)].number]):
                held = sequencer.propose()
                assert held is None or held.parent == plain(policy, tree)
        choice = sequencer.propose()
        if choice is not None:
            assert choice.parent == plain(policy, tree)
            branch = sequencer.next()
            assert branch is not None
            pending.append(branch)
        elif not pending:
            break
        if choice is None or len(pending) >= lookahead:
            branch = pending.pop(pick % len(pending))
            assert branch.parent is not None
            node = None
            if value is not None:
                grown = value + step % 11 * 1e-3
                node = Node(branch.number, branch.parent.node, score=grown, value=grown)
            exhausts = pick == 99 and branch.parent is not tree.root
            sequencer.tell(branch.number, Outcome(node, expandable, exhausts_parent=exhausts))
    tree.check()


def wide_tree() -> Tree:
    """The root has 20 children, of which two are ahead."""
    tree = Tree(branching=20)
    sequencer = Sequencer(tree, policies.Mcts(widen_scale=20.0), 1)
    for _ in range(60):
        branch = sequencer.next()
        assert branch is not None
        assert branch.parent is not None
        value = 1.0 if branch.number in (3, 8) else branch.number / 100
        node = Node(branch.number, branch.parent.node, score=value, value=value)
        sequencer.tell(branch.number, Outcome(node))
    sequencer.propose()
    return tree


def test_a_node_with_many_children_has_leaders() -> None:
    tree = wide_tree()
    assert tree.root.leaders is not None
    assert [tree.root.children[row // 2].number for row in tree.root.leaders.rows] == [3, 8]
    tree.check()


def test_a_child_that_rises_is_seen() -> None:
    """One that was far behind has the best value of all; the scale of values stays the same."""
    tree = wide_tree()
    leaders = tree.root.leaders
    assert leaders is not None
    tree.reserve(15)
    tree.settle(61, Node(61, tree.branches[15].node, score=1.0, value=1.0))
    assert tree.root.leaders is None
    assert tree.highest - tree.lowest == leaders.span
    policy = policies.Mcts(widen_scale=20.0)
    for _ in range(3):  # with leaders found again too
        assert Sequencer(tree, policy, 1, "live").propose() == (plain(policy, tree), None)


def test_the_checker_finds_leaders_that_are_none() -> None:
    tree = wide_tree()
    leaders = tree.root.leaders
    assert leaders is not None
    tree.root.leaders = leaders._replace(rows=leaders.rows[1:])
    with pytest.raises(AssertionError, match="leaders"):
        tree.check()


def test_a_child_that_comes_back_is_seen() -> None:
    """Leaders found while nothing could be tried below the best are not those afterwards."""
    tree, policy = wide_tree(), policies.Mcts(widen_scale=20.0)
    below = [b.number for b in tree.growing if is_below(b, 3) or is_below(b, 8)]
    with tree.without(below):
        for _ in range(3):
            assert policy.choose(tree, stream(1, 1)) == (plain(policy, tree), None)
    assert policy.choose(tree, stream(1, 1)) == (plain(policy, tree), None)
    tree.check()


@pytest.mark.parametrize("lowest", [-1.0, -10.0, -100.0, -1e4, -1e8])
def test_another_scale_of_values_is_seen(lowest: float) -> None:
    """With a far lower value the others are nearer to each other, and the less tried go first."""
    tree, policy = wide_tree(), policies.Mcts(widen_scale=20.0)
    assert policy.choose(tree, stream(1, 1)) == (plain(policy, tree), None)
    parent = next(branch for branch in tree.growing if is_below(branch, 3))
    tree.reserve(parent.number)
    tree.settle(61, Node(61, parent.node, score=lowest, value=lowest))
    assert tree.root.leaders is not None
    assert policy.choose(tree, stream(1, 1)) == (plain(policy, tree), None)


def is_below(branch: Branch | None, number: int) -> bool:
    while branch is not None and branch.number != number:
        branch = branch.parent
    return branch is not None


def test_the_checker_knows_a_node_that_was_looked_at_once() -> None:
    """It has no leaders yet, and children in which nothing can grow."""
    tree, policy = wide_tree(), policies.Mcts(widen_scale=20.0)
    tree.root.leaders = None
    tree.exhaust(15)
    assert not tree.branches[15].growing
    assert policy.choose(tree, stream(1, 1)) == (plain(policy, tree), None)
    assert tree.root.leaders is not None
    tree.check()
