"""A goal does not use itself: attributes of a declaration are withheld while it is being proved."""

from __future__ import annotations

import pytest

from tests.lean.conftest import state
from treewright.lean.session.answers import ProofState, TacticError
from treewright.lean.session.host_session import HostSession
from treewright.lean.sorries import extract

pytestmark = pytest.mark.xdist_group("lean-sandbox")

NATURALS = """\
namespace Own
inductive N | z | s (n : N)
def add : N → N → N
  | a, .z => a
  | a, .s b => .s (add a b)
"""


def _opened(lean: HostSession, text: str, declaration: str) -> ProofState:
    found = extract(lean, NATURALS + text)
    return next(s.states[0] for s in found if s.declaration == f"Own.{declaration}")


@pytest.mark.parametrize(
    ("theorem", "tactic"),
    [
        ("@[simp] theorem t (n : N) : add .z n = n := by sorry", "simp"),
        ("@[simp] theorem t (n : N) : add .z n = n := sorry", "simp"),
        ("@[grind =] theorem t (n : N) : add .z n = n := by sorry", "grind"),
        ("@[simp, grind] private theorem t (n : N) : add .z n = n := by sorry", "simp_all"),
        ("mutual\n@[simp] theorem t (n : N) : add .z n = n := by sorry\nend", "simp"),
        ("open Nat in\n@[simp] theorem t (n : N) : add .z n = n := by sorry", "simp"),
        ("class Odd (n : N) : Prop where\n  p : n = n\ninstance t (n : N) : Odd n := by sorry",
         "infer_instance"),
        ("structure P where\n  x : N\n"
         "@[ext] theorem t (p q : P) (h : p.x = q.x) : p = q := by sorry", "(ext; exact h)"),
    ],
)  # fmt: skip
def test_a_theorem_is_not_closed_by_its_own_attribute(
    lean: HostSession, theorem: str, tactic: str
) -> None:
    opened = _opened(lean, theorem, "t")
    assert isinstance(lean.run_tactic(opened, tactic), TacticError)


def test_a_theorem_is_not_closed_by_its_own_constant(lean: HostSession) -> None:
    opened = _opened(lean, "theorem t (n : N) : add .z n = n := by sorry", "t")
    result = lean.run_tactic(opened, "exact _root_.Own.t n")
    assert isinstance(result, TacticError)
    assert "itself" in result.message


def test_attributes_of_others_stay(lean: HostSession) -> None:
    text = (
        "@[simp] theorem zero_add (n : N) : add .z n = n := by\n"
        "  induction n with\n  | z => rfl\n  | s n ih => simp [add, ih]\n"
        "@[simp] theorem t (n : N) : add .z (add .z n) = n := by sorry"
    )
    assert state(lean.run_tactic(_opened(lean, text, "t"), "simp")).complete


@pytest.mark.parametrize(
    "text",
    [
        "open Classical in\n@[simp] theorem t (p : Prop) : ∃ _ : Decidable p, True := by sorry",
        "open Classical in\nset_option linter.all false in\n"
        "theorem t (p : Prop) : ∃ _ : Decidable p, True := by sorry",
    ],
)
def test_what_is_open_for_one_command_stays_open(lean: HostSession, text: str) -> None:
    opened = _opened(lean, text, "t")
    assert state(lean.run_tactic(opened, "exact ⟨inferInstance, trivial⟩")).complete


def test_what_uses_an_excluded_lemma_is_refused(lean: HostSession) -> None:
    text = (
        "@[simp] theorem zero_add (n : N) : add .z n = n := by sorry\n"
        "theorem t (n : N) : add .z (add .z n) = add .z n ∧ True := by sorry"
    )
    opened = _opened(lean, text, "t")
    assert state(lean.run_tactic(opened, "simp")).complete
    result = lean.run_tactic(opened, "simp", without=("Own.zero_add",))
    assert isinstance(result, TacticError)
    assert "Own.zero_add" in result.message
    assert state(lean.run_tactic(opened, "constructor", without=("Own.zero_add",))).goals
