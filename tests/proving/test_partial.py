"""The best partial proof of an unproved goal, in text and in JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tests.here import Program
from treewright.cli.prove_progress import narrator
from treewright.lean.session.answers import Hypothesis
from treewright.proving.records import GoalView, Iteration
from treewright.proving.replay import replay_offline
from treewright.proving.run import read_result
from treewright.proving.script.partial import find_lemmas, find_near_lemmas
from treewright.proving.settings import Settings, StatementTarget
from treewright.proving.tactics.factory import build_source
from treewright.proving.targets import statement_goal
from treewright.proving.trace import read_trace
from treewright.search.andor.graph import Changes, Child, Graph

pytestmark = pytest.mark.xdist_group("lean-session")

HARD = "∀ (f : Nat → Nat) (a : Nat), (∀ n, f (n + 1) = f n) → a = a ∧ f a < f 0 + 1 + f 7"
TACTICS = "intro f a h\nconstructor\nrfl\napply Nat.lt_of_le_of_lt\n"


def test_an_unproved_goal_ends_with_its_open_goals(
    tmp_path: Path, treewright_here: Program
) -> None:
    tactics = tmp_path / "tactics.txt"
    tactics.write_text(TACTICS)
    done = treewright_here(
        "prove", "--statement", HARD, "--simulations", "12", "--batch", "4", "--run-id", "r",
        "--no-strategies",
        "--step-timeout", "20", "--no-refute", "--tactics", str(tactics),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "the best partial proof:" in done.stdout
    assert "intro f a h" in done.stdout
    assert "sorry" in done.stdout
    assert "open:" in done.stdout
    assert "f a < f 0 + 1 + f 7" in done.stdout
    nearly = done.stdout.partition("lemmas that nearly fit:\n")[2]
    assert "    Nat.lt_of_le_of_lt: `apply Nat.lt_of_le_of_lt` leaves" in nearly, done.stdout
    directory = tmp_path / ".treewright/proof_runs/r"
    goal = json.loads((directory / "result.json").read_text())["goals"][0]
    assert goal["status"] == "unproved"
    assert "sorry" in goal["partial"]["script"]
    assert goal["partial"]["open"][0].endswith("⊢ f a < f 0 + 1 + f 7")
    assert replay_offline(directory, build_source(Settings())).difference == ""
    assert read_result(directory) is not None
    _progress_of(directory)


def _progress_of(directory: Path) -> None:
    """Check the progress lines of the same search: the tactic it tries, and the goal it is stuck
    at."""
    said = io.StringIO()
    told = narrator(said)
    told.goal(statement_goal(StatementTarget(HARD)), 1)
    turns = [x for x in read_trace(directory / "trace.jsonl") if isinstance(x, Iteration)]
    tree = Graph("root")
    for turn in (turns * 50)[:49] + [t for t in turns if t.node == 0 and t.attempts][:1]:
        told.iteration(turn, _with_nodes(tree, turn))
    line = said.getvalue().splitlines()[-1]
    assert line.startswith("  50 simulations, ")
    assert "trying `" in line
    assert "stuck at ⊢ " in line


def _with_nodes(tree: Graph, turn: Iteration) -> Graph:
    while len(tree.nodes) < turn.counters.nodes:
        tree._new_node(str(len(tree.nodes)), 1, 1, 0.5)
    return tree


def test_lemmas_that_only_lengthen_a_goal_do_not_nearly_fit() -> None:
    """`← List.length_reverse` applies wherever there is a length."""
    texts = {"root": "ys.length = n", "longer": "ys.reverse.length = n", "shorter": "ys = []"}
    texts |= {"first": "ys.length + 1 ≤ ?m", "second": "?m ≤ n"}
    tree = Graph("root")
    for tactic, left in {
        "rw [← List.length_reverse]": ["longer"],
        "rw [← my_lemma] at h": ["longer"],
        "rw [List.length_eq_zero_iff]": ["shorter"],
        "apply Nat.le_trans": ["first", "second"],
    }.items():
        tree.add_edge(tree.root, tactic, 0.1, [Child(key, 0.5) for key in left], Changes())
    found = find_near_lemmas(tree, lambda node: (GoalView(texts[node.key]),), {tree.root.id})
    assert [lemma.name for lemma in found] == ["List.length_eq_zero_iff", "Nat.le_trans"]


def test_lemmas_nearly_fit_where_the_partial_proof_goes_and_not_elsewhere() -> None:
    """A wrong witness leaves short goals, `1 = 0` for instance, that many a lemma is about."""
    tree = Graph("root")
    for tactic, key in (("constructor", "open"), ("refine ⟨0, ?_⟩", "wrong")):
        tree.add_edge(tree.root, tactic, 0.1, [Child(key, 0.5)], Changes())
    for node, tactic in zip(tree.nodes[1:], ("apply my_lemma", "apply Nat.other"), strict=True):
        tree.add_edge(node, tactic, 0.1, [Child(tactic, 0.5)], Changes())
    at = {tree.root.id, tree.by_key["open"].id}
    found = find_near_lemmas(tree, lambda node: (GoalView("p"),), at)
    assert [lemma.name for lemma in found] == ["my_lemma"]


def test_the_lemmas_of_a_tactic_are_those_that_are_no_hypotheses() -> None:
    goals = [GoalView("p", (Hypothesis("hab", "a ∣ b"), Hypothesis("ih", "q")))]
    for tactic, names in {
        "rw [Nat.add_comm, ← my_lemma, hab]": ["Nat.add_comm", "my_lemma"],
        "apply Nat.le_trans": ["Nat.le_trans"],
        "exact hab.trans ih": [],
        "simp only [List.map] at hab": ["List.map"],
        "refine ⟨_, Nat.dvd_refl _⟩": ["Nat.dvd_refl"],
        "induction n": [],
        "omega": [],
    }.items():
        assert find_lemmas(tactic, goals) == names, tactic
