"""Honest proofs pass; each layer of the replay check stands on its own."""

from __future__ import annotations

import pytest

from tests.lean.test_replay_hostile import HEAD, MEANING, ORIGINAL, WHOLE, judge
from treewright.lean import escapes
from treewright.lean.difference import difference
from treewright.lean.replay import Replayer
from treewright.lean.types import CheckResult
from treewright.lean.wasm.home import LeanHome
from treewright.lean.wasm.session import WasmSession

pytestmark = pytest.mark.xdist_group("lean-replay")

HONEST = {
    "intro and exact": ("∀ p q : Prop, p → q → p", "intro p q hp _\nexact hp"),
    "omega": ("∀ a b : Nat, a < b → a + 1 ≤ b", "intro a b h\nomega"),
    "induction": (
        "∀ n : Nat, 0 + n = n",
        "intro n\ninduction n with\n| zero => rfl\n| succ n ih => rw [← Nat.add_assoc, ih]",
    ),
    "simp": ("∀ xs : List Nat, (xs ++ []).length = xs.length", "intro xs\nsimp"),
    "cases": (
        "∀ p q : Prop, p ∨ q → q ∨ p",
        "intro p q h\ncases h with\n| inl h => exact .inr h\n| inr h => exact .inl h",
    ),
    "classical": ("∀ p : Prop, ¬¬p → p", "intro p h\nexact Classical.byContradiction h"),
    "choice": ("∀ p : Prop, p ∨ ¬p", "intro p\nexact (Classical.propDecidable p).em"),
    "decide": ("(10 : Nat) ∣ 100", "decide"),
    "decide +kernel": ("2 ^ 12 = 4096", "decide +kernel"),
    "grind": ("∀ a b c : Nat, a = b → b = c → a = c", "grind"),
    "funext": ("(fun n : Nat => n + 0) = id", "funext n\nrfl"),
    "propext": ("∀ p q : Prop, (p ↔ q) → p = q", "intro p q h\nexact propext h"),
    "calc": (
        "∀ a b : Nat, a = b → a + a = b + b",
        "intro a b h\ncalc a + a = b + a := by rw [h]\n  _ = b + b := by rw [h]",
    ),
    "have and obtain": (
        "∀ p : Nat → Prop, (∃ n, p n ∧ n > 3) → ∃ n, p n",
        "intro p h\nobtain ⟨n, hn, _⟩ := h\nhave k : p n := hn\nexact ⟨n, k⟩",
    ),
    "option for effort": ("1 + 1 = 2", "set_option maxRecDepth 2000 in\nrfl"),
    "comment with words": ("True", "-- no axiom, no sorry, no unsafe run_tac here\ntrivial"),
    "string with words": ('"sorry axiom".length = 11', "rfl"),
    "unicode": ("∀ α : Type, ∀ x : α, x = x", "intro α «x y»\nexact rfl"),
    "match": (
        "∀ n : Nat, n = 0 ∨ n > 0",
        "intro n\nmatch n with\n| 0 => left; rfl\n| k + 1 => right; omega",
    ),
    "bool": ("∀ a b : Bool, (a && b) = (b && a)", "intro a b\ncases a <;> cases b <;> rfl"),
    "int": ("∀ x y : Int, x - y + y = x", "intro x y\nomega"),
    "bitvec": ("∀ x : BitVec 8, x &&& x = x", "intro x\nsimp"),
}


@pytest.mark.parametrize(("statement", "script"), HONEST.values(), ids=HONEST.keys())
def test_honest_proofs_pass(replayer: Replayer, statement: str, script: str) -> None:
    verdict = replayer.theorem(statement, script)
    assert verdict.proved, verdict


FILE = """\
namespace Demo

/-- A definition that the statement is about. -/
def double (n : Nat) : Nat := n + n

variable (a b : Nat)

theorem helper : double a = 2 * a := by
  unfold double; omega

theorem main (h : a = b) : double a = 2 * b := by
  sorry

end Demo
"""


def test_a_proof_inside_a_file_passes(replayer: Replayer) -> None:
    candidate = FILE.replace("  sorry", "  rw [helper, h]")
    assert replayer.text(FILE, candidate, ["Demo.main"]).proved


def test_helper_lemmas_may_be_added(replayer: Replayer) -> None:
    candidate = FILE.replace(
        "theorem main",
        "theorem step (n : Nat) : double n = n * 2 := by\n  unfold double; omega\n\ntheorem main",
    )
    candidate = candidate.replace("  sorry", "  rw [h, step]; omega")
    verdict = replayer.text(FILE, candidate, ["Demo.main"])
    assert verdict.proved, verdict


def test_without_names_every_open_declaration_is_a_target(replayer: Replayer) -> None:
    original = "theorem a : 1 = 1 := by\n  sorry\ntheorem b : 2 = 2 := by\n  sorry\n"
    half = original.replace("  sorry", "  rfl", 1)
    whole = original.replace("  sorry", "  rfl")
    assert replayer.text(original, half).reason == "sorry"
    assert replayer.text(original, whole).proved


def test_a_proof_that_needs_more_than_the_allowed_axioms_fails(home: LeanHome) -> None:
    with Replayer(home, axioms=frozenset()) as strict:
        verdict = strict.theorem("∀ p q : Prop, (p ↔ q) → p = q", "intro p q h\nexact propext h")
    assert verdict.reason == "axiom"
    assert verdict.axioms == ("propext",)


def test_the_axioms_used_are_reported(replayer: Replayer) -> None:
    verdict = replayer.theorem("∀ p q : Prop, (p ↔ q) → p = q", "intro p q h\nexact propext h")
    assert verdict.axioms == ("propext",)


def test_an_original_that_does_not_elaborate_is_said_to_be_the_problem(replayer: Replayer) -> None:
    verdict = replayer.text(
        "theorem t : oops := by\n  sorry\n", "theorem t : oops := by\n  rfl\n", ["t"]
    )
    assert verdict.reason == "original"


def test_a_candidate_that_does_not_end_is_stopped(replayer: Replayer) -> None:
    text = "theorem t : 1 = 1 := by\n  sorry\n"
    loop = "theorem t : 1 = 1 := by\n  repeat (first | skip | rfl)\n"
    assert replayer.text(text, loop, ["t"], timeout=2).reason in ("timeout", "error")
    assert replayer.theorem("1 = 1", "rfl").proved


UNCHECKED = """\
set_option debug.skipKernelTC true in
theorem target : 1 = 2 := lcProof
"""


def test_the_kernel_has_the_last_word(home: LeanHome) -> None:
    """The elaborator can be told to believe this; the second look of the kernel does not."""
    with WasmSession(home) as session:
        believed = session.elaborate(UNCHECKED, keep=True)
        assert isinstance(believed, CheckResult)
        assert believed.ok
        assert believed.env is not None
        assert "unsafe declaration" in session.recheck("target", believed.env, 60)


@pytest.mark.parametrize("text", [*WHOLE.values(), *MEANING.values()])
def test_without_the_policy_the_other_layers_hold(
    replayer: Replayer, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(escapes, "policy", lambda *_: None)
    head = HEAD if text in WHOLE.values() else ""
    assert not judge(replayer, ORIGINAL, head + text).proved


def test_a_fresh_process_gives_the_same_verdict(home: LeanHome) -> None:
    with Replayer(home) as own:
        text = "theorem t : 1 = 1 := by\n  sorry\n"
        assert own.text(text, text.replace("sorry", "rfl"), ["t"], fresh_process=True).proved


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"abc", b"abc", ()),
        (b"a\nsorry\nb\n", b"a\nrfl\nb\n", ((2, 6),)),
        (b"x", b"x y", ((0, 3),)),
        (b"a\nb\n", b"a\n", ((2, 2),)),
        (b"a\nb\nc\nd\n", b"A\nb\nc\nD\nE\n", ((0, 2), (6, 10))),
        (b"", b"new\n", ((0, 4),)),
    ],
)
def test_the_changed_stretches_are_whole_lines(
    old: bytes, new: bytes, expected: tuple[tuple[int, int], ...]
) -> None:
    assert difference(old, new) == expected
