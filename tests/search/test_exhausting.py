"""Nothing more can be tried under a node: found between two choices, known from then on."""

from __future__ import annotations

import random

import pytest

from tests.search.invariants import check
from treewright.search.policies import Choice, make
from treewright.search.sequencer import Outcome, Sequencer
from treewright.search.tree import Node, Tree

POLICIES = ["best-first", "mcts", "ab-mcts", "random"]


def sequencer(policy: str, order: str = "fixed") -> Sequencer:
    tree = Tree(Node(0, None, score=0.0))
    return Sequencer(tree, make(policy), 7, order, 2)  # pyright: ignore[reportArgumentType]


def outcome(made: Sequencer, number: int) -> Outcome:
    parent = made.tree.branches[number].parent
    value = ((number * 37) % 11) / 11
    return Outcome(Node(number, parent.node if parent else None, score=value, value=value))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_proposal_is_the_choice_that_is_made(policy: str) -> None:
    asked, silent = sequencer(policy), sequencer(policy)
    for number in range(1, 30):
        proposed = asked.propose()
        assert proposed == asked.propose()
        first, second = asked.next(), silent.next()
        assert first is not None
        assert second is not None
        assert first.parent is not None
        assert second.parent is not None
        assert proposed == Choice(first.parent.number) == Choice(second.parent.number)
        for each in (asked, silent):
            each.tell(number, outcome(each, number))
            check(each.tree)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("order", ["fixed", "live"])
def test_a_search_with_exhausted_nodes_is_rebuilt_from_its_records(policy: str, order: str) -> None:
    """Every node has two children in it; the third try finds that out."""
    made = sequencer(policy, order)
    history: list[tuple[str, int, int]] = []
    while made.made < 40:
        choice = made.propose()
        assert choice is not None
        if made.tree.branches[choice.parent].tries == 2:
            history.append(("exhausted", choice.parent, made.seen))
            made.exhaust(choice.parent)
            check(made.tree)
            continue
        history.append(("chosen", choice.parent, made.seen))
        branch = made.tree.reserve(*choice)
        made.tell(branch.number, outcome(made, branch.number))
    again = sequencer(policy, order)
    told = 0
    for kind, parent, seen in history:
        while told < seen:
            told += 1
            again.tell(told, outcome(again, told))
        if kind == "exhausted":
            again.exhaust(parent, seen)
        else:
            again.take(Choice(parent), seen)
    while told < made.made:
        told += 1
        again.tell(told, outcome(again, told))
    check(again.tree)
    assert again.propose() == made.propose()
    assert [b.number for b in again.tree.growing] == [b.number for b in made.tree.growing]


def test_it_is_over_when_everything_is_exhausted() -> None:
    made = sequencer("random")
    made.exhaust(0)
    assert made.propose() is None
    assert made.is_over


@pytest.mark.parametrize("policy", POLICIES)
def test_nodes_that_cannot_be_chosen_now_leave_no_trace(policy: str) -> None:
    """A tree with suspended nodes chooses, after their return, like a tree without."""
    tree = Tree(Node(0, None, score=0.0), branching=3)
    made = Sequencer(tree, make(policy), 7, "live")
    other = Sequencer(Tree(Node(0, None, score=0.0), branching=3), make(policy), 7, "live")
    rng = random.Random(3)
    for number in range(1, 60):
        for _ in range(3):
            some = rng.choices(range(number), k=min(number, rng.randrange(4)))  # or one twice
            with tree.without(some):
                check(tree)
                choice = made.propose()
                assert choice is None or choice.parent not in some
                assert choice is not None or not tree.growing
            check(tree)
        order = [branch.number for branch in tree.growing]
        assert order == [branch.number for branch in other.tree.growing]
        first = made.propose()
        assert first is not None
        assert first == other.propose()
        for each in (made, other):
            each.tree.reserve(*first)
            each.tell(number, outcome(each, number))


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_is_tried_under_a_node_that_was_exhausted_before_its_outcome_was_known(
    policy: str,
) -> None:
    """In fixed order a user may know an outcome, and ban its node, before a choice knows it."""
    made = Sequencer(Tree(Node(0, None, score=0.0), branching=2), make(policy), 7, "live")
    made.tree.reserve(0)
    made.exhaust(1)
    made.tell(1, outcome(made, 1))
    check(made.tree)
    assert not made.tree.can_grow(made.tree.branches[1])
    assert [branch.number for branch in made.tree.growing] == [0]
    made.exhaust(0)
    assert made.propose() is None
