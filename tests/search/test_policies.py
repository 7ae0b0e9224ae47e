"""The choices of the policies: golden trees, purity, and progress of each of them."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import treewright
from tests.search.invariants import check
from tests.search.landscape import shape, walk
from treewright.kernel import plugins
from treewright.kernel.errors import UsageError
from treewright.search import policies
from treewright.search.andor import policies as andor_policies
from treewright.search.policies.beam import frontier
from treewright.search.sequencer import Outcome, Sequencer, stream
from treewright.search.tree import Node, Status, Tree

GOLDEN = Path(__file__).parent / "golden_trees.json"
NAMES = list(policies.known())


def grown(name: str, values: list[float | None], lookahead: int = 1) -> tuple[Tree, list[int]]:
    """The tree that a policy grows when its choices come out like this, and whom it chose."""
    policy = policies.make(name)
    tree = Tree(branching=policy.branching, sums_subtrees=policy.sums_subtrees)
    sequencer = Sequencer(tree, policy, seed=3, lookahead=lookahead)
    parents: list[int] = []
    for value in values:
        branch = sequencer.next()
        if branch is None:
            break
        assert branch.parent is not None
        parents.append(branch.parent.number)
        node = None
        if value is not None:
            node = Node(branch.number, branch.parent.node, score=value, value=value)
        sequencer.tell(branch.number, Outcome(node))
    return tree, parents


@pytest.mark.parametrize("name", NAMES)
def test_golden_trees(name: str) -> None:
    """The choices on a fixed sequence of outcomes. A change here changes every recorded search:
    it needs a new name or a new setting, not a new golden file."""
    golden = json.loads(GOLDEN.read_text())
    tree, parents = grown(name, golden["values"])
    check(tree)
    assert parents == golden["parents"][name]


VALUES = st.lists(st.one_of(st.none(), st.floats(-5, 5)), max_size=40)


@pytest.mark.parametrize("name", NAMES)
@given(values=VALUES, number=st.integers(1, 99), lookahead=st.integers(1, 5))
def test_a_policy_is_a_function_of_tree_and_seed(name, values, number, lookahead) -> None:
    """A fresh one, on a tree of the same events, chooses the same; asking changes nothing."""
    one, _ = grown(name, values, lookahead)
    other, _ = grown(name, values, lookahead)
    first = policies.make(name).choose(one, stream(5, number))
    assert policies.make(name).choose(one, stream(5, number)) == first
    assert policies.make(name).choose(other, stream(5, number)) == first
    check(one)
    if first is not None:
        assert one.can_grow(one.branches[first.parent])


@given(
    values=VALUES,
    name=st.sampled_from(["beam", "best-first", "random"]),
    lookahead=st.integers(1, 5),
)
def test_statistics_that_a_policy_does_not_read_change_no_choice(values, name, lookahead):
    """Policies without `sums_subtrees` choose the same on a tree that keeps those statistics."""
    policy = policies.make(name)
    assert not policy.sums_subtrees
    shapes = []
    for sums_subtrees in (False, True):
        tree = Tree(branching=policy.branching, sums_subtrees=sums_subtrees)
        sequencer = Sequencer(tree, policy, seed=3, lookahead=lookahead)
        for value in values:
            branch = sequencer.next()
            if branch is None:
                break
            assert branch.parent is not None
            node = None
            if value is not None:
                node = Node(branch.number, branch.parent.node, score=value, value=value)
            sequencer.tell(branch.number, Outcome(node))
        shapes.append([branch.parent and branch.parent.number for branch in tree.branches])
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", NAMES)
def test_each_policy_beats_staying_at_the_root(name: str) -> None:
    with treewright.open_search(policy=name, seed=1, budget=120) as search:
        search.run(walk)
        assert search.evaluations == 120
        assert search.best is not None
        assert search.best.depth > 1
        assert search.best.value > -2.0  # three steps of the walk away from the start


def test_beam_waits_for_the_depth_and_takes_the_best_of_it() -> None:
    tree = Tree()
    policy = policies.Beam(width=2, children=3)
    for _ in range(3):
        choice = policy.choose(tree, Random(0))
        assert choice is not None
        tree.reserve(*choice)
    assert policy.choose(tree, Random(0)) is None
    for number, value in ((1, 0.5), (3, 0.9), (2, 0.7)):
        assert policy.choose(tree, Random(0)) is None
        tree.settle(number, Node(number, tree.root.node, score=value, value=value))
    assert [branch.number for branch in frontier(tree.levels[1], 2)] == [2, 3]
    chosen = []
    while (choice := policy.choose(tree, Random(0))) is not None:
        chosen.append(choice.parent)
        tree.reserve(*choice)
    assert chosen == [2, 2, 2, 3, 3, 3]


def test_beam_ends_at_its_depth_and_when_nothing_is_open() -> None:
    with treewright.open_search(policy=policies.Beam(width=2, children=2, depth=3)) as search:
        search.run(walk)
        assert max(node.depth for node in search.nodes) == 3
        assert search.evaluations == 2 + 4 + 4
    with treewright.open_search(policy="beam", root_score=0.0, gate="parent") as search:
        search.run(lambda task: -1.0)
        assert search.evaluations == 4


def test_a_closed_node_is_never_chosen() -> None:
    for name in NAMES:
        with treewright.open_search(policy=name, budget=40) as search:
            search.run(lambda task: treewright.Result(1.0, expandable=task.number % 2 == 0))
            parents = {node.parent.number for node in search.nodes if node.parent}
            assert all(number % 2 == 0 for number in parents), name


def test_an_exhausted_node_is_never_chosen_again() -> None:
    for name in NAMES:
        with treewright.open_search(policy=name, budget=30) as search:
            while (task := search.ask()) is not None:
                if task.parent.number == 0 and task.number > 2:
                    search.fail(task, "no more ideas", exhausts_parent=True)
                else:
                    search.tell(task, 0.1)
            late = [n for n in search.nodes if n.parent is search.root and n.number > 2]
            assert late == [], name
            assert len(search.failures) <= 1, name
            tree = search._history.sequencer.tree
            check(tree)


def test_actions_are_told_apart_by_ab_mcts() -> None:
    with treewright.open_search(
        policy="ab-mcts", seed=2, budget=150, actions=("good", "bad")
    ) as search:
        search.run(lambda task: 1.0 if task.action == "good" else 0.0)
        good = sum(node.action == "good" for node in search.nodes)
    assert good > 85  # 75 if they were alike


def test_failures_count_as_the_worst() -> None:
    """A policy that ignored them would go on asking where nothing ever comes of it."""
    for name in ("mcts", "ab-mcts"):
        with treewright.open_search(policy=name, seed=4, budget=200) as search:
            while (task := search.ask()) is not None:
                top = task.path[1].number if task.parent.depth else 0
                if top == 1:
                    search.fail(task, "broken")
                else:
                    search.tell(task, 0.5 if task.number == 1 else 0.4)
            below_first = len(search.failures)
            assert below_first < 60, name


def test_a_policy_is_one_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in's policy is known by name wherever policies are named."""

    class Oldest(policies.Policy, frozen=True, tag="oldest"):
        name = "oldest"
        summary = "the oldest node"

        def choose(self, tree: Tree, rng: Random) -> policies.Choice | None:
            return policies.Choice(tree.growing[0].number) if tree.growing else None

    class Entry:
        name, value = "oldest", "plugin:Oldest"

        def load(self) -> type[policies.Policy]:
            return Oldest

    monkeypatch.setattr(plugins, "entry_points", lambda group: [Entry()])
    policies.POLICIES.refresh()
    try:
        assert "oldest" in policies.known()
        with treewright.open_search(policy="oldest", budget=3) as search:
            search.run(lambda task: 1.0)
            assert [parent for _, parent, _ in shape(search)] == [0, 0, 0]
    finally:
        policies.POLICIES.refresh()


class Misnamed(policies.Policy, frozen=True, tag="other"):
    name = "other"
    summary = "another name than its entry's"

    def choose(self, tree: Tree, rng: Random) -> policies.Choice | None:
        return None


@pytest.mark.parametrize(
    ("loaded", "words"),
    [
        (ImportError("No module named 'absent'"), "ImportError: No module named 'absent'"),
        (RuntimeError("on a bad day"), "RuntimeError: on a bad day"),
        (object, "it is no policy"),
        (Misnamed, "tag is 'other'"),
    ],
)
@pytest.mark.parametrize("kinds", [policies, andor_policies], ids=["trees", "goals"])
def test_a_plug_in_that_cannot_be_loaded_does_not_disturb_others(
    kinds, loaded, words, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Entry:
        name, value = "broken", "plugin:Broken"

        def load(self) -> object:
            if isinstance(loaded, Exception):
                raise loaded
            return loaded

    monkeypatch.setattr(plugins, "entry_points", lambda group: [Entry()])
    kinds.POLICIES.refresh()
    try:
        assert "broken" not in kinds.known()
        assert kinds.make("mcts") is not None
        with pytest.raises(UsageError, match="'broken'") as refused:
            kinds.make("broken")
        assert "plugin:Broken" in str(refused.value)
        assert (words if kinds is policies else "") in str(refused.value)
        assert "broken       cannot be used: " in "\n".join(policies.POLICIES.listing())
    finally:
        policies.POLICIES.refresh()
        andor_policies.POLICIES.refresh()


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("no-such", {}, "there are beam, best-first"),
        ("beam", {"widht": 3}, "no setting 'widht'"),
        ("beam", {"width": 0}, "width"),
        ("mcts", {"exploration": -1.0}, "exploration"),
        ("mcts", {"selection": "ucb"}, "selection"),
    ],
)
def test_wrong_settings_are_said(name, options, words) -> None:
    with pytest.raises(UsageError, match=words):
        policies.make(name, options)


def test_pending_choices_are_seen() -> None:
    """Two workers that ask at once are not sent to the same new place by MCTS."""
    tree = Tree(branching=None)
    sequencer = Sequencer(tree, policies.Mcts(widen_power=0.0, widen_scale=2.0), 0, "live")
    for _ in range(2):
        branch = sequencer.next()
        assert branch is not None
        node = Node(branch.number, tree.root.node, score=0.5, value=0.5)
        sequencer.tell(branch.number, Outcome(node))
    first, second = sequencer.next(), sequencer.next()
    assert first is not None
    assert second is not None
    assert first.parent is not second.parent
    assert first.status is Status.PENDING


@pytest.mark.parametrize("name", NAMES)
def test_the_scale_and_the_offset_of_scores_mean_nothing(name: str) -> None:
    """Differences of a millionth near a million count as differences of one near zero."""
    golden = json.loads(GOLDEN.read_text())
    values = golden["values"]
    moved = [None if value is None else 2.0**20 + value * 2.0**-10 for value in values]
    assert grown(name, moved)[1] == grown(name, values)[1]
