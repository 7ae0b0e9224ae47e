"""Every `sorry`, found by elaboration; and a proof in the place of exactly one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.here import Lent
from tests.lean.conftest import state
from treewright.kernel.errors import UsageError
from treewright.lean.session.answers import CheckResult
from treewright.lean.session.host_session import HostSession
from treewright.lean.sorries import extract, extract_files, lean_files, replace
from treewright.lean.verify.replayer import Replayer

pytestmark = pytest.mark.xdist_group("lean-sandbox")

SOURCE = """\
import Init
-- a sorry in a comment
/- and /- a nested sorry -/ here -/
namespace Α
variable {β : Type}

def text := "sorry"

theorem first (a b : Nat) (h : a = b) : b = a := by
  have k : a + 0 = b := by
    sorry
  exact k.symm

theorem second [Inhabited β] (x : β) : x = x := sorry

macro "todo" : tactic => `(tactic| sorry)

theorem third : True ∧ True := ⟨by todo, by admit⟩

theorem fourth (p q : Prop) (hp : p) (hq : q) : p ∧ q := by
  constructor <;> sorry

example : ∀ n : Nat, n = n := fun n => sorry
end Α
"""


def test_every_sorry_is_found_where_it_stands(lean: HostSession) -> None:
    found = extract(lean, SOURCE)
    data = SOURCE.encode()
    assert [data[s.start : s.end].decode() for s in found] == [
        "sorry", "sorry", "todo", "admit", "sorry", "sorry",
    ]  # fmt: skip
    assert [s.declaration.split(".")[-1] for s in found[:5]] == [
        "first", "second", "third", "third", "fourth",
    ]  # fmt: skip
    assert (found[0].line, found[0].column) == (11, 4)
    assert [s.tactic for s in found] == [True, False, True, True, True, False]
    assert found[0].imports == ("Init",)
    assert found[0].goal.pretty == "a b : Nat\nh : a = b\n⊢ a + 0 = b"
    assert [h.name for h in found[1].goal.hypotheses] == ["β", "inst✝", "x"]
    assert [g.target for g in found[4].goals] == ["p", "q"]
    assert found[5].goal.pretty == "β : Type\nn : Nat\n⊢ n = n"


def test_the_states_of_a_sorry_can_be_proved(lean: HostSession) -> None:
    found = extract(lean, SOURCE)
    assert state(lean.run_tactic(found[0].states[0], "simpa using h")).complete
    used_instance = "have : β := default\nrfl"
    assert state(lean.run_tactic(found[1].states[0], used_instance)).complete
    assert [state(lean.run_tactic(s, "assumption")).complete for s in found[4].states] == [True] * 2


PROOFS = ["simpa using h", "rfl", "trivial", "trivial", "assumption", "rfl"]


def test_one_replacement_changes_nothing_else(lean: HostSession) -> None:
    for index, proof in enumerate(PROOFS):
        found = extract(lean, SOURCE)
        changed = replace(SOURCE, found[index], proof)
        before, after = SOURCE.encode(), changed.encode()
        assert after.startswith(before[: found[index].start])
        assert after.endswith(before[found[index].end :])
        assert len(extract(lean, changed)) == len(found) - 1


def test_all_of_them_replaced_make_a_checked_file(lean: HostSession, replayer: Replayer) -> None:
    text = SOURCE
    for proof in reversed(PROOFS):
        text = replace(text, extract(lean, text)[-1], proof)
    result = lean.check(text)
    assert isinstance(result, CheckResult)
    assert result.ok, result.diagnostics
    assert replayer.text(SOURCE, text).proved


@pytest.mark.parametrize(
    "source",
    [
        "theorem t (a b : Nat) : a + b = b + a := by sorry\n",
        "theorem t (a b : Nat) : a + b = b + a := by\n  sorry\n",
        "theorem t (a b : Nat) : a + b = b + a := by\n  · sorry\n",
        "theorem t (a b : Nat) : a + b = b + a := sorry\n",
        "theorem t (a b : Nat) : a + b = b + a := by\n  first | sorry | skip\n",
        "theorem t (a b : Nat) : a + b = b + a := by\n  induction a with\n"
        "  | zero => omega\n  | succ n ih => sorry\n",
        "theorem τ (α β : Nat) : α + β = β + α := by /- ∀ -/ sorry\n",
        "theorem t (a b : Nat) : a + b = b + a := by\r\n  sorry\r\n",
    ],
)
def test_scripts_of_several_lines_fit_wherever_they_stand(lean: HostSession, source: str) -> None:
    script = "have h : 1 = 1 := by\n  rfl\nomega"
    text = replace(source, extract(lean, source)[0], script)
    result = lean.check(text)
    assert isinstance(result, CheckResult)
    assert result.ok, (text, result.diagnostics)


INLINE = """\
theorem t (p q : Prop) (h : p ∧ q) : q ∧ p := by sorry -- a note
theorem u (p q : Prop) (h : p ∧ q) : q ∧ p := by
  have k : q ∧ p := by sorry
  exact k
theorem v (p q : Prop) (h : p ∧ q) : (q ∧ p) ∧ True := by
  constructor
  · exact (by sorry)
  · trivial
"""


def test_behind_a_by_a_script_begins_a_line_of_its_own(lean: HostSession) -> None:
    text = INLINE
    for sorry in reversed(extract(lean, INLINE)):
        text = replace(text, sorry, "constructor\n· exact h.2\n· exact h.1")
    result = lean.check(text)
    assert isinstance(result, CheckResult)
    assert not result.errors, text
    lines = text.splitlines()
    assert lines[0].endswith(":= by")
    assert lines[1:4] == ["  constructor", "  · exact h.2", "  · exact h.1 -- a note"]
    assert lines[5:9] == [
        "  have k : q ∧ p := by", "    constructor", "    · exact h.2", "    · exact h.1",
    ]  # fmt: skip


def test_a_project_is_walked_and_bad_files_are_named(lean: HostSession, tmp_path: Path) -> None:
    (tmp_path / "A.lean").write_text("theorem a : 1 = 1 := by sorry\n")
    (tmp_path / "B.lean").write_text("import Mathlib\ntheorem b : 1 = 1 := by sorry\n")
    (tmp_path / "C.lean").write_bytes(b"\xff\xfe")
    (tmp_path / ".lake").mkdir()
    (tmp_path / ".lake" / "D.lean").write_text("theorem d : 1 = 1 := by sorry\n")
    found = extract_files(lambda: Lent(lean), lean_files(tmp_path), timeout=60)
    reports = {r.path.name: r for r in found}
    assert list(reports) == ["A.lean", "B.lean", "C.lean"]
    assert len(reports["A.lean"].sorries) == 1
    assert "Mathlib" in reports["B.lean"].error
    assert "UTF-8" in reports["C.lean"].error
    with pytest.raises(UsageError):
        lean_files(tmp_path / "nothing")


def test_a_file_without_sorries_has_none(lean: HostSession) -> None:
    assert extract(lean, "theorem a : 1 = 1 := rfl\nexample := `(sorry)\n") == ()
