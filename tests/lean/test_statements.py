"""A goal is opened without the proofs of the theorems before it, and is the same goal."""

from __future__ import annotations

import pytest

from tests.lean.conftest import state
from tests.lean.long_file import long_file
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.host_session import HostSession
from treewright.lean.sorries import extract

pytestmark = pytest.mark.xdist_group("lean-sandbox")

LONG_PROOF = "  intro h\n  have : True := trivial\n  have := this\n  clear this\n"


def test_goals_are_those_of_the_whole_text(lean: HostSession) -> None:
    text = long_file(80)
    whole = extract(lean, text)
    short = extract(lean, text, statements=True)
    assert [(s.declaration, s.goal.hash) for s in short] == [
        (s.declaration, s.goal.hash) for s in whole
    ]
    for sorry in short:
        assert state(lean.run_tactic(sorry.states[0], "omega")).complete


def test_a_proof_is_left_out_if_nothing_else_can_see_it(lean: HostSession) -> None:
    broken = "theorem a (p : Prop) : p → p := by\n  intro h\n  exact this_is_not_there_at_all h\n"
    done = lean.check(f"{broken}theorem b : 1 = 1 := by sorry\n", sorries=True, statements=True)
    assert isinstance(done, CheckResult)
    assert not done.errors
    assert [sorry.declaration for sorry in done.sorries] == ["b"]
    whole = lean.check(f"{broken}theorem b : 1 = 1 := by sorry\n", sorries=True)
    assert isinstance(whole, CheckResult)
    assert whole.errors, "without `statements` nothing is left out"


@pytest.mark.parametrize(
    "text",
    [
        f"theorem a (p : Prop) : p → p := by\n{LONG_PROOF}  sorry\n",
        f'macro "todo" : tactic => `(tactic| sorry)\ntheorem a (p q : Prop) : p → q := by\n'
        f"{LONG_PROOF}  todo\n",
        "theorem a (p q : Prop) : p → q ∧ p := by\n"
        "  intro hypothesis\n  exact ⟨(by admit), hypothesis⟩\n",
    ],
)
def test_a_proof_with_a_sorry_stays(lean: HostSession, text: str) -> None:
    found = lean.check(text, sorries=True, statements=True)
    assert isinstance(found, CheckResult)
    assert [sorry.declaration for sorry in found.sorries] == ["a"]


def test_names_that_a_proof_declares_are_there(lean: HostSession) -> None:
    text = (
        "def f (n : Nat) : Nat := n + 3\n"
        "theorem a (n : Nat) : n = n := by\n  exact (helper n : n = n).trans (helper n)\n"
        "where helper (n : Nat) : n = n := rfl\n"
        "theorem b : f 1 = 4 ∧ 1 = 1 := by sorry\n"
    )
    (found,) = extract(lean, text, statements=True)
    assert state(lean.run_tactic(found.states[0], "exact ⟨by decide, a.helper 1⟩")).complete
