"""`treewright.prove` and `treewright.verify` on real Lean: results, runs that go on, errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import treewright as package
from tests.here import Program
from treewright.kernel.errors import TreewrightError, UsageError
from treewright.lean import processes
from treewright.lean.verify.verdict import Verdict

pytestmark = pytest.mark.xdist_group("lean-session")

OPEN = "theorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := by\n  sorry\n"


def test_a_file_is_proved_and_the_proof_verified(treewright_here: Program, tmp_path: Path) -> None:
    source = tmp_path / "Swap.lean"
    source.write_text(OPEN)
    result = package.prove(source, directory=tmp_path, run_id="one", seed=3, library=False)
    assert result.is_proved
    assert [goal.status for goal in result.goals] == ["proved"]
    assert Path(result.directory) == tmp_path / ".treewright/proof_runs/one"
    assert result.file is not None
    verdict = package.verify(source, Path(result.file))
    assert verdict
    assert verdict.certificate is not None
    assert verdict.certificate.targets == ("swap",)
    refused = package.verify(OPEN, OPEN.replace("sorry", "exact ⟨h.1, h.2⟩"))
    assert not refused
    assert refused.reason == "error"
    with pytest.raises(UsageError, match=r"exists; continue it with treewright.resume_proof\("):
        package.prove(source, directory=tmp_path, run_id="one")


def test_a_search_that_was_stopped_goes_on(treewright_here: Program, tmp_path: Path) -> None:
    stopped = package.prove(
        statement="∀ p q : Prop, (∀ r : Prop, (p → q → r) → r) → p ∧ q",
        directory=tmp_path,
        stop=lambda: True,
        library=False,
    )
    assert not stopped.is_proved
    assert not stopped.complete
    assert package.resume_proof(stopped.directory).is_proved
    looked = package.prove(
        statement="∀ n : Nat, n < 5", directory=tmp_path, simulations=2, library=False
    )
    assert looked.goals[0].status == "false"
    assert not looked.is_proved


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give one thing to prove"),
        ({"target": "F.lean", "statement": "True"}, "give one thing to prove"),
        ({"target": "nowhere.lean"}, "cannot read nowhere.lean"),
        ({"statement": "True", "time_limit": float("nan")}, "time_limit must be"),
        ({"statement": "True", "simulations": 0}, "simulations must be at least 1"),
        ({"statement": "True", "axioms": ["sorryAx"]}, "cannot allow sorryAx"),
        ({"statement": "True", "policy": "clever"}, "clever"),
        ({"statement": "True", "lean": "other"}, "there is no Lean backend 'other'"),
    ],
)
def test_a_wrong_call_has_a_helpful_error(given: dict, message: str, tmp_path: Path) -> None:
    with pytest.raises(TreewrightError, match=message):
        package.prove(directory=tmp_path, **given)
    assert list(tmp_path.iterdir()) == []


def test_a_fault_is_no_verdict(
    treewright_here: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A check that timed out cannot be had at will, so the answer of one is put in its place."""
    lent = processes.Replayer

    def lost(*given, **more):
        made = lent(*given, **more)
        made.text = lambda *_, **__: Verdict("timeout", "the judge took too long")
        return made

    monkeypatch.setattr(processes, "Replayer", lost)
    with pytest.raises(package.NoVerdict, match=r"no verdict \(timeout\).*larger timeout"):
        package.verify(OPEN, OPEN + "\n")
    with pytest.raises(UsageError, match=r"give pathlib.Path\('A.lean'\)"):
        package.verify("A.lean", OPEN)
    with pytest.raises(UsageError, match="cannot read"):
        package.verify(tmp_path / "none.lean", OPEN)
