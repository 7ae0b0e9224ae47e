"""Scripts from solved graphs: bullets, goals that share metavariables, steps to leave out."""

from __future__ import annotations

import pytest

from treewright.proving.script.extraction import (
    Step,
    choose_shortest,
    extract,
    find_superfluous,
    remove_steps,
    render,
)
from treewright.search.andor.graph import Changes, Child, Graph


def leaf(tactic: str) -> Step:
    return Step(tactic)


def chain(*tactics: str) -> Step:
    step = Step(tactics[-1])
    for tactic in reversed(tactics[:-1]):
        step = Step(tactic, (((0,), step),))
    return step


def test_single_goals_are_closed_under_bullets() -> None:
    step = Step("constructor", (((0,), chain("intro h", "exact h")), ((1,), leaf("rfl"))))
    assert render(step) == "constructor\n· intro h\n  exact h\n· rfl"


def test_bullets_nest() -> None:
    inner = Step("constructor", (((0,), leaf("a")), ((1,), leaf("b"))))
    step = Step("constructor", (((0,), inner), ((1,), leaf("c"))))
    assert render(step).splitlines() == [
        "constructor",
        "· constructor",
        "  · a",
        "  · b",
        "· c",
    ]


def test_goals_that_hang_together_come_last_in_their_order() -> None:
    step = Step(
        "refine f", (((0, 2), chain("pick", "rest")), ((1,), leaf("one")), ((3,), leaf("two")))
    )
    assert render(step).splitlines() == [
        "refine f",
        "rotate_left 1",
        "· one",
        "rotate_left 1",
        "· two",
        "pick",
        "rest",
    ]


def test_goals_that_hang_together_are_brought_back_to_the_front() -> None:
    step = Step("refine f", (((0, 1, 3), leaf("rest")), ((2,), leaf("one"))))
    assert render(step).splitlines() == [
        "refine f",
        "rotate_left 2",
        "· one",
        "rotate_left 1",
        "rest",
    ]


def test_a_tactic_of_several_lines_keeps_them() -> None:
    step = Step(
        "constructor", (((0,), leaf("have : a := by\n  simp\nexact this")), ((1,), leaf("rfl")))
    )
    assert render(step).splitlines()[1:4] == ["· have : a := by", "    simp", "  exact this"]


def test_the_proof_of_a_shared_goal_is_written_twice() -> None:
    tree, changes = Graph("r"), Changes()
    edge = tree.add_edge(tree.root, "constructor", None, [Child("a", 1), Child("a", 1)], changes)
    assert edge is not None
    tree.add_edge(edge.children[0], "rfl", None, [], changes)
    assert render(extract(tree.root)) == "constructor\n· rfl\n· rfl"


def test_an_open_tree_has_no_proof() -> None:
    with pytest.raises(ValueError, match="not solved"):
        extract(Graph("r").root)


def test_a_deep_proof_is_extracted() -> None:
    tree, changes = Graph("0"), Changes()
    node = tree.root
    for depth in range(1, 3000):
        edge = tree.add_edge(node, "t", None, [Child(str(depth), 1)], changes)
        assert edge is not None
        node = edge.children[0]
    tree.add_edge(node, "rfl", None, [], changes)
    tree.check()
    assert render(extract(tree.root)).count("\n") == 2999


def test_steps_that_are_not_needed_are_left_out() -> None:
    step = Step(
        "intro h",
        (
            (
                (0,),
                Step(
                    "constructor", (((0,), chain("skip", "exact h")), ((1,), chain("noop", "rfl")))
                ),
            ),
        ),
    )
    needed = ("intro h", "constructor", "exact h", "rfl")
    places = find_superfluous(step, lambda script: all(tactic in script for tactic in needed))
    shorter = remove_steps(step, places)
    assert render(shorter) == "intro h\nconstructor\n· exact h\n· rfl"


def test_minimising_asks_a_bounded_number_of_times() -> None:
    asked: list[str] = []
    step = chain(*(f"t{n}" for n in range(100)))
    find_superfluous(step, lambda script: bool(asked.append(script)), most_checks=10)
    assert len(asked) == 10


def test_the_shortest_of_the_ways_found_is_taken() -> None:
    """`long` is solved first; `short` only when a goal that it shares is."""
    tree, changes = Graph("r"), Changes()
    long = tree.add_edge(tree.root, "long", None, [Child("a", 1)], changes)
    short = tree.add_edge(tree.root, "short", None, [Child("b", 1)], changes)
    assert long is not None
    assert short is not None
    middle = tree.add_edge(long.children[0], "middle", None, [Child("b", 1)], changes)
    assert middle is not None
    tree.add_edge(short.children[0], "rfl", None, [], changes)
    assert render(extract(tree.root, choose_shortest(tree.root))) == "short\nrfl"
