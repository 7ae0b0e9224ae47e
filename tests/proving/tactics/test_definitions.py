"""Definitions of the file are unfolded if a goal mentions them."""

from __future__ import annotations

from treewright.lean.session.answers import Hypothesis
from treewright.proving.records import GoalView
from treewright.proving.tactics.basic_sources import DefinitionTactics, defined_in

SOURCE = """
def double (n : Nat) := n + n
@[simp] private def My.half (n : Nat) := n / 2
theorem no_definition : True := trivial
-- define nothing
noncomputable abbrev Big := Nat
"""


def test_names_are_read_off_the_text() -> None:
    assert defined_in(SOURCE) == {"double", "half", "Big"}


def test_only_mentioned_definitions_are_proposed() -> None:
    source = DefinitionTactics(defined_in(SOURCE))
    goal = GoalView("My.half (n + n) = n", (Hypothesis("h", "Big"),))
    tactics = [candidate.tactic for candidate in source.suggest([goal], 0).candidates]
    assert tactics[:2] == ["simp [My.half]", "unfold My.half"]
    assert "simp [Big]" in tactics
    assert not any("double" in tactic for tactic in tactics)
    assert source.suggest([goal], 1).candidates == ()
    assert source.suggest([GoalView("1 = 1")], 0).candidates == ()


def test_a_call_in_dot_notation_is_no_name() -> None:
    """`n.double` of a variable n cannot be unfolded by that name."""
    source = DefinitionTactics(defined_in(SOURCE))
    goal = GoalView("n.double = My.half n", (Hypothesis("n", "Nat"),))
    tactics = [candidate.tactic for candidate in source.suggest([goal], 0).candidates]
    assert "simp [My.half]" in tactics
    assert not any("n.double" in tactic for tactic in tactics)
