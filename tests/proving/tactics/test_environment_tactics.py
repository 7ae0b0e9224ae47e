"""Tactics of packages. Macros with their names stand in: no package can be had here."""

from __future__ import annotations

from pathlib import Path

import pytest

from treewright.kernel.errors import UsageError
from treewright.lean.session.answers import ProofState
from treewright.lean.session.host_session import HostSession
from treewright.proving.api import prove
from treewright.proving.records import GoalView, Hypothesis
from treewright.proving.settings import FileTarget, Settings, read_run
from treewright.proving.tactics.environment_tactics import (
    EnvironmentTactic,
    EnvironmentTactics,
    find_available,
    may_have_more_than_core,
    read_table,
)
from treewright.proving.tactics.factory import add_environment_tactics, build_source
from treewright.proving.targets import read_file_goals

pytestmark = pytest.mark.xdist_group("lean-session")

STAND_INS = """\
macro "aesop" : tactic => `(tactic| simp_all)
macro "norm_num" : tactic => `(tactic| simp)
macro "ring" : tactic => `(tactic| ac_rfl)
macro "nlinarith" : tactic => `(tactic| omega)
syntax "linarith" : tactic
theorem goal (a b : Nat) : a * b = b * a := by
  sorry
"""


def goal(target: str, **hypotheses: str) -> GoalView:
    given = tuple(Hypothesis(name, of) for name, of in hypotheses.items())
    return GoalView(hypotheses=given, target=target)


def calls(target: str, round_number: int = 0, **hypotheses: str) -> list[str]:
    source = EnvironmentTactics(read_table())
    suggestions = source.suggest([goal(target, **hypotheses)], round_number)
    return [c.tactic for c in suggestions.candidates]


def test_lean_says_which_tactics_a_file_has(lean: HostSession) -> None:
    """`linarith` parses and has no implementation; `simp?` and `exact?` go with `norm_num`."""
    start = lean.start_declaration(STAND_INS)
    assert isinstance(start, ProofState)
    found = {t.name for t in find_available(read_table(), lean, start)}
    assert found == {"aesop", "norm_num", "ring", "nlinarith", "simp?", "exact?"}


def test_a_file_of_core_lean_has_none_and_lean_is_not_asked(
    lean: HostSession, tmp_path: Path
) -> None:
    def opening(session: HostSession) -> ProofState:
        raise AssertionError("Lean was asked")

    text = "import Std.Data.HashMap\ntheorem goal : 1 = 1 := by sorry\n"
    settings = add_environment_tactics(
        Settings(), FileTarget("F.lean", text), tmp_path, lean, opening
    )
    assert settings.sources.environment == ()
    start = lean.start("True")
    assert isinstance(start, ProofState)
    assert find_available(read_table(), lean, start) == ()


def test_the_tactics_of_a_file_are_in_the_settings_and_suggested(
    lean: HostSession, tmp_path: Path
) -> None:
    target = FileTarget(str(tmp_path / "F.lean"), STAND_INS)
    (spec,) = read_file_goals(target, lean)
    settings = add_environment_tactics(Settings(), target, tmp_path, lean, spec.opening)
    assert "ring" in {t.name for t in settings.sources.environment}
    offered = build_source(settings).suggest([goal("a * b = b * a", a="Nat", b="Nat")], 0)
    ring = next(c for c in offered.candidates if c.tactic == "ring")
    assert ring.source == "environment"
    start = spec.opening(lean)
    assert isinstance(start, ProofState)
    end = lean.run_tactic(start, ring.tactic)
    assert isinstance(end, ProofState)
    assert end.closed


@pytest.mark.usefixtures("lent_lean")
def test_a_run_records_the_tactics_and_its_proof_may_use_them(tmp_path: Path) -> None:
    """Only the stand-in for `ring` knows the axiom that the goal needs."""
    text = """\
axiom mix : Nat → Nat → Nat
axiom secret : ∀ a b : Nat, mix a b = mix b (a + 0)
macro "ring" : tactic => `(tactic| exact secret _ _)
theorem goal (a b : Nat) : mix a b = mix b a := by
  sorry
"""
    path = tmp_path / "F.lean"
    path.write_text(text)
    axioms = ("propext", "Quot.sound", "Classical.choice", "mix", "secret")
    result = prove(
        path, simulations=40, library=False, refute=False, axioms=axioms, directory=tmp_path
    )
    assert result.is_proved, result.goals
    (recorded,) = tmp_path.rglob("run.json")
    assert [t.name for t in read_run(recorded).settings.sources.environment] == ["ring"]
    assert '"source":"environment"' in (recorded.parent / "trace.jsonl").read_text()


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("theorem t : 1 = 1 := by sorry", False),
        ("import Lean\nimport Std.Data\n", False),
        ("import Mathlib.Tactic.Ring\n", True),
        ("module\npublic import Aesop\n", True),
        ('macro "m" : tactic => `(tactic| rfl)\n', True),
    ],
)
def test_only_imports_and_syntax_bring_more_tactics(source: str, more: bool) -> None:
    assert may_have_more_than_core(source) == more


def test_calls_fit_the_goal() -> None:
    assert "ring" in calls("a * b = b * a")
    assert "ring" not in calls("a ≤ b")
    assert {"linarith", "gcongr", "bound"} <= set(calls("a * c ≤ b * c"))
    assert "positivity" in calls("0 < a * a + 1")
    assert "positivity" not in calls("a < b")
    assert "field_simp" in calls("a / b = c")
    assert "push_neg" in calls("¬∀ n, n < 3")
    assert "linarith" in calls("False")
    assert "aesop" in calls("p ∧ q")


def test_dear_tactics_wait_for_the_second_round() -> None:
    assert "nlinarith" not in calls("a * a ≥ 0")
    later = calls("a * b ≤ a * a + b * b", 1, a="ℝ", b="ℝ", h="a < b")
    assert "nlinarith" in later
    assert "nlinarith [sq_nonneg (a - b), sq_nonneg a, sq_nonneg b]" in later
    assert {"exact?", "hint"} <= set(later)
    source = EnvironmentTactics(read_table())
    assert not source.suggest([goal("a ≤ b")], 0).complete
    assert source.suggest([goal("a ≤ b")], 1).complete
    assert source.suggest([goal("a ≤ b")], 2).candidates == ()


def test_a_project_adds_and_replaces_entries(tmp_path: Path) -> None:
    (tmp_path / "treewright.toml").write_text(
        '[[tactics]]\nname = "mine"\ncalls = ["mine"]\ngoals = ["order"]\ncost = "cheap"\n'
        '[[tactics]]\nname = "ring"\ncalls = ["ring!"]\n'
    )
    table = {t.name: t for t in read_table(tmp_path)}
    assert table["mine"] == EnvironmentTactic("mine", ("mine",), ("order",), "cheap")
    assert table["ring"].calls == ("ring!",)
    assert "aesop" in table


@pytest.mark.parametrize(
    "entry",
    [
        'name = "x"\n',
        'name = "x"\ncalls = ["x"]\ncost = "free"\n',
        'name = "x"\ncalls = ["x; sorry"]\n',
        'name = "x"\ncalls = ["x"]\nextra = 1\n',
    ],
)
def test_a_wrong_entry_is_an_error_that_names_the_file(tmp_path: Path, entry: str) -> None:
    (tmp_path / "treewright.toml").write_text(f"[[tactics]]\n{entry}")
    with pytest.raises(UsageError, match=r"treewright\.toml"):
        read_table(tmp_path)
