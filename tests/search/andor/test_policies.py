"""The choices of policies over AND/OR graphs: golden graphs, purity, the meaning of each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.andor.worlds import Growth, World, drawn_world
from treewright.kernel import plugins
from treewright.kernel.errors import UsageError
from treewright.search import policy_registry
from treewright.search.andor import policies
from treewright.search.andor.graph import Graph, Node, Status
from treewright.search.andor.policies import Beam, BestFirst, Mcts, Policy

GOLDEN = Path(__file__).parent / "golden_graphs.json"
NAMES = list(policies.known())
MOST_TURNS = 40


@pytest.mark.parametrize("example", json.loads(GOLDEN.read_text()), ids=lambda e: e["name"])
@pytest.mark.parametrize("name", NAMES)
def test_golden_graphs(example: dict, name: str) -> None:
    growth = Growth(World.of(example), policies.make(name))
    assert " ".join(growth.choices(MOST_TURNS)) == example["choices"][name]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    name=st.sampled_from(NAMES),
    backup=st.sampled_from(["product", "min"]),
    priors=st.booleans(),
    closing=st.sampled_from([0.0, 0.1]),
)
def test_choices_are_pure_possible_and_keep_the_books_right(
    seed: int, name: str, backup: str, priors: bool, closing: float
) -> None:
    world = drawn_world(seed, priors=priors, closing=closing)
    growth = Growth(world, policies.make(name, {"backup": backup}), seed)
    for _ in range(40):
        if growth.over:
            break
        next_seed = (seed << 64) + growth.turns + 1
        chosen = growth.policy.choose(growth.graph, next_seed)
        made_again = policies.make(name, policies.describe(growth.policy))
        assert made_again.choose(growth.graph, next_seed) == chosen
        _is_a_way_to_an_open_goal(growth.graph, *chosen)
        growth.turn()
        growth.graph.check()
        if isinstance(growth.policy, BestFirst):
            for node in growth.graph.nodes:
                assert node.outlook == growth.policy.outlook(node)


def _is_a_way_to_an_open_goal(graph: Graph, path: list, goal: Node) -> None:
    assert goal.status is Status.OPEN
    assert not goal.exhausted
    here = graph.root
    for place, (node, edge) in enumerate(path, start=1):
        assert node is here
        assert edge in node.live
        here = path[place][0] if place < len(path) else goal
        assert here in edge.children
    assert here is goal


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_comes_to_an_end_where_there_is_one(name: str) -> None:
    """Every goal is tried in the end: those that can be solved are solved, the others are dead."""
    for seed in range(25):
        world = drawn_world(seed, goals=12, closing=0.2)
        growth = Growth(world, policies.make(name), seed)
        while not growth.over:
            growth.turn()
            assert growth.turns < 2000, seed
        solvable = growth.graph.root.status is Status.SOLVED
        reference = Growth(world, Mcts())
        reference.choices(2000)
        assert solvable == (reference.graph.root.status is Status.SOLVED), seed


AND_WORLD = World(
    {"root": 0.5, "easy": 0.9, "hard": 0.1, "alone": 0.3, "more": 0.2},
    {
        "root": [("split", ["easy", "hard"], None), ("single", ["alone"], None)],
        "easy": [("close", [], None)],
        "hard": [("step", ["more"], None)],
        "alone": [("fail", ["root"], None), ("fail", ["root"], None), ("close", [], None)],
    },
)
"""`easy` looks best of all, but is of no use without `hard`."""


def test_best_first_counts_all_goals_of_an_edge() -> None:
    chosen = Growth(AND_WORLD, BestFirst(patience=0.9)).choices(9)
    assert chosen == ["root", "root", "alone", "alone", "alone"]


def test_best_first_takes_the_worst_goal_of_an_edge_first() -> None:
    world = World(AND_WORLD.estimates, {**AND_WORLD.actions, "alone": []})
    chosen = Growth(world, BestFirst()).choices(9)
    assert chosen[:4] == ["root", "root", "alone", "hard"]
    assert "easy" not in chosen  # for `hard` leads nowhere


def test_a_beam_keeps_the_goals_of_an_edge_together_and_waits_for_its_level() -> None:
    growth = Growth(AND_WORLD, Beam(width=2, turns=2))
    assert growth.choices(4) == ["root", "root", "alone", "alone"]
    # the level has two partial solutions: the worst goal of the other comes before any deeper one
    assert growth.choices(1) == ["hard"]


def test_a_narrow_beam_leaves_out_and_a_later_pass_comes_back() -> None:
    world = World(
        {"root": 0.5, "good": 0.9, "bad": 0.1},
        {
            "root": [("a", ["good"], None), ("b", ["bad"], None)],
            "good": [("x", ["good"], None)] * 9,
            "bad": [("close", [], None)],
        },
    )
    chosen = Growth(world, Beam(width=1, turns=2)).choices(9)
    assert chosen == ["root", "root", "good", "good", "good", "bad"]


def test_chance_is_seeded() -> None:
    world = drawn_world(5, closing=0.0)
    runs = [Growth(world, policies.make("random"), seed).choices(30) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_a_policy_is_one_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    class Root(Policy, msgspec.Struct, frozen=True, tag="root"):
        name: ClassVar[str] = "root"
        summary: ClassVar[str] = "always the root"
        discount: float = 1.0
        backup: str = "min"

        def choose(self, graph: Graph, seed: int) -> policies.Descent:
            return [], graph.root

    class Entry:
        name, value = "root", "plugin:Root"

        def load(self) -> type[Policy]:
            return Root

    monkeypatch.setattr(plugins, "entry_points", lambda group: [Entry()])
    policies.POLICIES.refresh()
    try:
        assert "always the root" in policy_registry.summaries(policies.known())
        assert Growth(AND_WORLD, policies.make("root")).choices(2) == ["root", "root"]
    finally:
        policies.POLICIES.refresh()


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("breadth", {}, "no policy 'breadth'; there are mcts, best-first, beam, random"),
        ("beam", {"exploration": 1.0}, "policy beam has no setting 'exploration'"),
        ("beam", {"width": 0}, "policy beam: Expected `int` >= 1"),
        ("mcts", {"backup": "mean"}, "policy mcts: Invalid enum value 'mean'"),
    ],
)
def test_wrong_settings_are_errors(name: str, options: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        policies.make(name, options)


def test_settings_are_given_as_text() -> None:
    given = policy_registry.parse_options(["width=3", "backup=min", "discount=0.5"])
    assert policies.make("beam", given) == Beam(width=3, backup="min", discount=0.5)
    with pytest.raises(UsageError, match="given twice"):
        policy_registry.parse_options(["width=3", "width=4"])
    with pytest.raises(UsageError, match="write KEY=VALUE"):
        policy_registry.parse_options(["width"])
