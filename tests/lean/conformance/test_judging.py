"""The replay check accepts and refuses the same candidates on both hosts, with the same words."""

from __future__ import annotations

import pytest

from treewright.lean.verify.replayer import Replayer

_ORIGINAL = """def double (n : Nat) : Nat := n + n

inductive Tree where
  | leaf : Tree
  | node : Tree → Tree → Tree

theorem goal (n : Nat) : double n = 2 * n := by
  sorry
"""


def with_proof(proof: str, original: str = _ORIGINAL) -> str:
    return original.replace("sorry", proof)


def test_a_proof_is_accepted_and_certified(check: Replayer) -> None:
    verdict = check.text(_ORIGINAL, with_proof("unfold double; omega"))
    assert verdict.proved, verdict
    certificate = verdict.certificate
    assert certificate is not None
    assert certificate.targets == ("goal",)
    assert set(certificate.axioms) <= {"propext", "Quot.sound", "Classical.choice"}
    assert certificate.constants >= 2
    assert certificate.home == check._host.digest()
    trusts_imports = "as they are compiled" in certificate.checks[-1]
    assert trusts_imports == (check._host.backend == "native")
    assert any("soundness" in warning for warning in certificate.warnings)


def test_a_statement_with_a_script(check: Replayer) -> None:
    assert check.theorem("∀ p q : Prop, p ∧ q → q ∧ p", "intro p q h\nexact ⟨h.2, h.1⟩").proved
    assert check.theorem("∀ n : Nat, n < n + 1", "intro n\nexact Nat.lt_succ_self n").proved
    assert check.theorem("1 = 2", "rfl").reason == "error"


def test_own_recursion_matching_and_structures(check: Replayer) -> None:
    original = (
        "structure Pair where\n  first : Nat\n  second : Nat\n"
        "def Pair.swap (p : Pair) : Pair := ⟨p.second, p.first⟩\n"
        "def len : List Nat → Nat\n  | [] => 0\n  | _ :: rest => len rest + 1\n"
        "theorem swaps (p : Pair) : p.swap.swap = p := by sorry\n"
        "theorem len_cons (a : Nat) (l : List Nat) : len (a :: l) = len l + 1 := by sorry\n"
    )
    candidate = original.replace("= p := by sorry", "= p := by rfl")
    candidate = candidate.replace("+ 1 := by sorry", "+ 1 := by rfl")
    verdict = check.text(original, candidate)
    assert verdict.proved, verdict
    assert verdict.certificate is not None
    assert verdict.certificate.targets == ("len_cons", "swaps")
    named = check.text(original, candidate, ["swaps", "len_cons"])
    assert named.certificate == verdict.certificate


def test_a_definition_that_was_open_may_be_filled(check: Replayer) -> None:
    original = "def f : Nat → Nat := sorry\ntheorem t : f 0 = f 0 := sorry\n"
    candidate = "def f : Nat → Nat := fun n => n\ntheorem t : f 0 = f 0 := rfl\n"
    verdict = check.text(original, candidate)
    assert verdict.proved, verdict
    assert verdict.certificate is not None
    assert verdict.certificate.filled == ("f",)


def test_an_error_elsewhere_refuses_no_other_theorem(check: Replayer) -> None:
    original = "theorem wrong : 1 = 2 := by decide\n" + _ORIGINAL
    candidate = with_proof("unfold double; omega", original)
    verdict = check.text(original, candidate, ["goal"])
    assert verdict.proved, verdict
    resting = original.replace("sorry", "have := wrong\n  sorry")
    verdict = check.text(resting, resting.replace("sorry", "omega"), ["goal"])
    assert verdict.reason == "original", verdict


HOSTILE = {
    "another statement": (
        _ORIGINAL.replace("double n = 2 * n := by\n  sorry", "True := trivial"),
        {"statement", "escape"},
    ),
    "another definition": (
        with_proof("rfl").replace("n + n", "2 * n"),
        {"statement", "error"},
    ),
    "an axiom": (
        with_proof("exact cheat n").replace(
            "theorem goal", "axiom cheat (n : Nat) : double n = 2 * n\ntheorem goal"
        ),
        {"escape", "axiom"},
    ),
    "sorry elsewhere": (
        with_proof("exact helper n").replace(
            "theorem goal",
            "theorem helper (n : Nat) : double n = 2 * n := sorry\ntheorem goal",
        ),
        {"escape", "sorry"},
    ),
    "sorry by its constant": (with_proof("exact sorryAx _ true"), {"sorry"}),
    "compiled code": (with_proof("native_decide"), {"escape", "error"}),
    "code that is believed": (
        with_proof("exact absurd (Lean.ofReduceBool false true rfl) (by decide)"),
        {"escape", "error", "unsafe", "axiom", "kernel"},
    ),
    "a declaration that goes": (
        "def double (n : Nat) : Nat := n + n\n"
        "theorem goal (n : Nat) : double n = 2 * n := by unfold double; omega\n",
        {"missing", "error", "statement"},
    ),
    "another constructor": (
        with_proof("unfold double; omega").replace("  | leaf : Tree\n", "  | leaf : Nat → Tree\n"),
        {"statement", "error"},
    ),
    "notation that changes the statement": (
        with_proof("trivial").replace(
            "theorem goal", 'local notation:50 a " = " b => True\ntheorem goal'
        ),
        {"escape", "statement", "error"},
    ),
    "an option that skips the kernel": (
        "set_option debug.skipKernelTC true\n" + with_proof("unfold double; omega"),
        {"escape"},
    ),
    "code at elaboration": (
        with_proof("unfold double; omega") + 'run_cmd Lean.logInfo m!"x"\n',
        {"escape"},
    ),
    "an unsafe helper": (
        with_proof("exact helper n").replace(
            "theorem goal",
            "unsafe def helper (n : Nat) : double n = 2 * n := helper n\ntheorem goal",
        ),
        {"escape", "error", "unsafe"},
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_proofs_are_refused(check: Replayer, name: str) -> None:
    candidate, reasons = HOSTILE[name]
    assert candidate != _ORIGINAL
    verdict = check.text(_ORIGINAL, candidate, ["goal"], declarations=True)
    assert not verdict.proved
    assert verdict.reason in reasons, verdict
    assert verdict.certificate is None


def test_the_same_text_is_no_proof(check: Replayer) -> None:
    assert check.text(_ORIGINAL, _ORIGINAL).reason == "unchanged"
    assert check.text(_ORIGINAL, with_proof("rfl"), ["nothing"]).reason in ("original", "error")


def test_declarations_of_the_text_are_replayed_one_by_one(check: Replayer) -> None:
    text = "theorem a : 1 = 1 := rfl\ntheorem b : 1 = 2 := sorry\ntheorem c : 1 = 2 := rfl\n"
    verdicts = check.declarations(text, ["a", "b", "c"])
    assert verdicts["a"].proved
    assert verdicts["b"].reason == "sorry"
    assert verdicts["c"].reason in ("sorry", "missing")  # what Lean declares after an error
