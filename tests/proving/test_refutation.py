"""False goals: refuted by a witness, in files too, in the trace, and never called proved."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from tests.proving.runs import Prove, SessionFactory
from treewright.lean.verify.replayer import Replayer
from treewright.proving.cell_settings import CellSettings
from treewright.proving.replay import replay_live, replay_offline
from treewright.proving.settings import Settings
from treewright.proving.tactics.counterexamples import (
    MOST_CLOSED,
    MOST_REASONED,
    counterexamples,
    datatypes,
)
from treewright.proving.tactics.factory import build_source
from treewright.proving.targets import parse

pytestmark = pytest.mark.xdist_group("lean-session")

CASES = Path(__file__).resolve().parents[2] / "bench" / "false.jsonl"
FILE = """\
namespace Small

def double (n : Nat) : Nat := n + n

theorem wrong (n : Nat) (h : n > 1) : double n < 5 := by
  sorry

theorem right (n : Nat) : double n = n + n := by
  sorry

theorem split (n : Nat) : n = n ∧ n * n = n := by
  constructor
  · sorry
  · sorry

end Small
"""


@pytest.mark.parametrize("mode", ["centralized", "distributed"])
def test_a_false_goal_of_a_file_is_refuted_by_a_witness(
    prove: Prove, sessions: SessionFactory, replayer: Replayer, tmp_path: Path, mode: str
) -> None:
    path = tmp_path / "Small.lean"
    path.write_text(FILE)
    settings = Settings(
        mode=mode,  # pyright: ignore[reportArgumentType]
        simulations=12,
        step_timeout=20.0,
        cells=CellSettings(agents=3) if mode == "distributed" else None,
    )
    result, directory = prove(parse(str(path), None), settings)
    wrong, right, fine, whole = result.goals
    assert (wrong.status, wrong.proof) == ("false", "exact fun h => absurd (h 5) (by decide)")
    assert "`Small.wrong` says is false" in wrong.detail
    assert right.status == "proved"
    assert fine.status == "partial"
    assert (whole.status, whole.proof) == ("false", "exact fun h => absurd (h 2) (by decide)")
    source = build_source(settings)
    assert replay_offline(directory, source).difference == ""
    assert replay_live(directory, sessions, source, replayer).difference == ""


def test_a_refutation_that_was_changed_is_noticed(prove: Prove) -> None:
    result, directory = prove("∀ n : Nat, n < 5", Settings(simulations=8, step_timeout=20.0))
    assert result.goals[0].proof == "exact fun h => absurd (h 5) (by decide)"
    trace = directory / "trace.jsonl"
    trace.write_text(trace.read_text().replace("absurd (h 5)", "absurd (h 6)"))
    assert replay_offline(directory, build_source(Settings())).difference


def test_a_goal_without_a_negation_is_unproved(prove: Prove, tmp_path: Path) -> None:
    """A goal inside a definition: its result is no proposition."""
    path = tmp_path / "Definition.lean"
    path.write_text("def bounded (n : Nat) : Fin 5 := ⟨n, by sorry⟩\n")
    result, directory = prove(parse(str(path), None), Settings(simulations=4, step_timeout=20.0))
    assert [goal.status for goal in result.goals] == ["unproved"]
    assert "negation" not in result.goals[0].detail
    assert replay_offline(directory, build_source(Settings())).difference == ""


def test_witnesses_are_bounded_by_a_count() -> None:
    many = list(counterexamples("¬∀ (a b c d e f : Nat), a + b = c * d + e * f"))
    assert len(many) <= MOST_CLOSED + 4 * MOST_REASONED
    assert len(set(many)) == len(many)


@pytest.mark.parametrize(
    ("target", "first"),
    [
        ("¬∀ (n : Nat), n < 5", "absurd (h 5) (by decide)"),
        ("¬∀ {α : Type u_1} (a b : α), a = b", "absurd (@h Bool true false) (by decide)"),
        ("¬∀ (xs ys : List Nat), xs ++ ys = ys ++ xs", "absurd (h [0] [1]) (by decide)"),
        ("¬∀ (f : Nat → Nat), f 0 = 7", "absurd (h (fun _ => 0)) (by decide)"),
        ("¬∀ (p : Nat → Prop), p 0", "absurd (h (fun _ => False)) (by decide)"),
        ("¬∀ (q : Nat × Bool), q.1 = 0", "absurd (h (1, true)) (by decide)"),
    ],
)
def test_witnesses_fit_the_types(target: str, first: str) -> None:
    assert f"exact fun h => {first}" in list(counterexamples(target))


def test_values_of_the_datatypes_of_a_file() -> None:
    found = datatypes(
        "inductive Tree where\n  | leaf\n  | node (l : Tree) (v : Nat) (r : Tree)\n\n"
        "inductive Colour\n  | red | green\n  deriving DecidableEq\n"
    )
    assert found["Tree"][:2] == [".leaf", "(.node .leaf 0 .leaf)"]
    assert found["Colour"] == [".red", ".green"]


def test_half_of_the_false_goals_was_put_aside() -> None:
    names = [json.loads(line)["name"] for line in CASES.read_text().splitlines()]
    aside = [n for n in names if int(hashlib.sha256(n.encode()).hexdigest(), 16) % 2]
    assert len(set(names)) == len(names) >= 40
    assert abs(len(aside) - len(names) / 2) <= 2
