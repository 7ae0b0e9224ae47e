"""Equations between small terms over the functions of a goal: they hold, and the search ends."""

from __future__ import annotations

import pytest

from tests.lean.conftest import state
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession

pytestmark = pytest.mark.xdist_group("lean-session")

SEQUENCES = """\
namespace Own
inductive Seq (α : Type u) where | nil | cons (x : α) (r : Seq α)
def Seq.app : Seq α → Seq α → Seq α | .nil, s => s | .cons x r, s => .cons x (r.app s)
def Seq.rev : Seq α → Seq α | .nil => .nil | .cons x r => r.rev.app (.cons x .nil)
theorem goal (s : Seq α) : s.rev.rev = s := by
  sorry
"""
SLOW = """\
namespace Own
def slow : Nat → Nat | 0 => 1 | n + 1 => slow n + slow n
def tower : Nat → Nat | 0 => 1 | n + 1 => 2 ^ tower n
theorem goal (n : Nat) : slow (tower n) = tower (slow n) := by
  sorry
"""
UNKNOWN = """\
namespace Own
inductive Reach : Nat → Nat → Prop
  | refl : Reach n n
  | trans : Reach n m → Reach m k → Reach n k
opaque hidden : Nat → Nat
theorem goal (n m : Nat) (h : Reach n m) (q : Quot (fun a b : Nat => a = b)) :
    hidden n = hidden m := by
  sorry
"""


def opened(lean: HostSession, source: str) -> ProofState:
    return state(lean.start_declaration(source))


def test_equations_between_the_functions_of_a_goal_are_found(lean: HostSession) -> None:
    found = lean.explore(opened(lean, SEQUENCES), size=5, seconds=60.0)
    texts = {
        " = ".join((e.left, e.right)).replace("Own.", "").replace("Seq.", "")
        for e in found.equations
    }
    assert any(t.startswith("rev (rev ") for t in texts), texts
    assert any(t.startswith(("app (rev ", "rev (app ")) for t in texts), texts
    assert found.terms > 0


def test_no_equation_is_refuted_by_other_values(lean: HostSession) -> None:
    goal = opened(lean, SEQUENCES)
    found = lean.explore(goal, size=5, seconds=60.0)
    assert found.equations
    for equation in found.equations[:12]:
        binders = " ".join(f"({name} : {of})" for name, of in equation.binders)
        stated = f"∀ {binders}, ({equation.left} : {equation.type}) = {equation.right}"
        both = state(lean.run_tactic(goal, f"have lemma_ : {stated} := ?_"))
        for place in range(len(both.goals)):
            one = state(lean.focus(both, [place]))
            if "lemma_" not in one.goals[0].pretty:
                assert lean.test(one, seed=77, seconds=10.0).outcome != "false", stated


def test_the_same_seed_gives_the_same_equations(lean: HostSession) -> None:
    goal = opened(lean, SEQUENCES)
    one, two = (lean.explore(goal, size=4, seed=9, seconds=60.0) for _ in range(2))
    assert one == two


@pytest.mark.parametrize("source", [SLOW, UNKNOWN], ids=["slow", "unknown"])
def test_an_exploration_ends(lean: HostSession, source: str) -> None:
    found = lean.explore(opened(lean, source), seconds=2.0)
    assert lean.alive
    assert len(found.equations) < 2000


def test_explorations_free_what_they_make(lean: HostSession) -> None:
    goal = opened(lean, SEQUENCES)
    sizes = []
    for turn in range(5):
        lean.explore(goal, size=4, seed=turn, seconds=60.0)
        sizes.append(lean.heap_bytes)
    assert sizes[-1] <= sizes[1] + (8 << 20), sizes
