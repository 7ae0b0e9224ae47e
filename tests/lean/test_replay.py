"""Honest proofs pass; each layer of the replay check stands on its own."""

from __future__ import annotations

import hashlib
import os
import signal

import msgspec
import pytest

from tests.here import lent_replayer
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.answers import Diagnostic
from treewright.lean.verify.additions import find_additions, new_errors
from treewright.lean.verify.replayer import Replayer

pytestmark = pytest.mark.xdist_group("lean-replay")

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
    verdict = replayer.text(FILE, candidate, ["Demo.main"], declarations=True)
    assert verdict.proved, verdict
    assert replayer.text(FILE, candidate, ["Demo.main"]).reason == "escape"


def test_an_error_elsewhere_that_names_a_line_may_move(replayer: Replayer) -> None:
    """Lean's table of recursive calls names their lines."""
    loop = "def loop : Nat → Nat → Nat\n  | 0, m => m\n  | n, m => loop (n + 1) m + loop m n\n"
    original = f"theorem t (p q : Prop) (hp : p) (hq : q) : p ∧ q := by\n  sorry\n{loop}"
    candidate = original.replace("  sorry", "  constructor\n  · exact hp\n  · exact hq")
    verdict = replayer.text(original, candidate, ["t"])
    assert verdict.proved, verdict


def test_errors_are_the_same_if_their_numbers_moved_with_them() -> None:
    def error(line: int, text: str) -> Diagnostic:
        return Diagnostic("error", text, line, 0)

    before = [error(5, "see line 7: x1"), error(5, "see line 7: x1 ?m.13")]
    moved = [error(8, "see line 10: x1"), error(8, "see line 7: x1 ?m.15")]
    assert new_errors(moved, before) == ()
    assert new_errors([*moved, moved[0]], before) == (moved[0],)
    for text in ("see line 9: x1", "see line 10: x2", "see line 10: x1 x1"):
        assert new_errors([error(8, text)], before) == (error(8, text),)


def test_without_names_every_open_declaration_is_a_target(replayer: Replayer) -> None:
    original = "theorem a : 1 = 1 := by\n  sorry\ntheorem b : 2 = 2 := by\n  sorry\n"
    half = original.replace("  sorry", "  rfl", 1)
    whole = original.replace("  sorry", "  rfl")
    verdict = replayer.text(original, half)
    assert (verdict.reason, verdict.detail) == ("sorry", "it rests on the sorry of b")
    assert replayer.text(original, whole).proved


def test_a_proof_that_needs_more_than_the_allowed_axioms_fails(replayer: Replayer) -> None:
    strict = lent_replayer(replayer, frozenset())
    verdict = strict.theorem("∀ p q : Prop, (p ↔ q) → p = q", "intro p q h\nexact propext h")
    assert verdict.reason == "axiom"
    assert verdict.axioms == ("propext",)


def test_the_axioms_used_are_reported(replayer: Replayer) -> None:
    verdict = replayer.theorem("∀ p q : Prop, (p ↔ q) → p = q", "intro p q h\nexact propext h")
    assert verdict.axioms == ("propext",)


def test_a_candidate_that_imports_what_is_not_there_is_wrong_and_not_the_call(
    replayer: Replayer,
) -> None:
    original = "theorem t : 1 = 1 := by\n  sorry\n"
    verdict = replayer.text(original, f"import Nowhere\n{original.replace('sorry', 'rfl')}", ["t"])
    assert verdict.reason == "error"
    assert "Nowhere" in verdict.detail


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


def test_the_kernel_has_the_last_word(replayer: Replayer) -> None:
    """The elaborator can be told to believe this; the judge's kernel is not asked to."""
    verdict = replayer.declarations(UNCHECKED, ["target"])["target"]
    assert verdict.reason in ("axiom", "kernel"), verdict


def test_declarations_of_a_text_are_judged_each_by_itself(replayer: Replayer) -> None:
    text = (
        "theorem good : 1 = 1 := rfl\n"
        "theorem weak : 1 = 2 := sorry\n"
        "theorem code : Lean.reduceBool System.Platform.isEmscripten = true := rfl\n"
        "theorem broken : 1 = 2 := rfl\n"
        "private theorem own : 2 = 2 := have _ := good; rfl\n"
    )
    verdicts = replayer.declarations(text, ["good", "weak", "code", "own", "absent"])
    assert {name: verdict.reason for name, verdict in verdicts.items()} == {
        "good": "proved",
        "weak": "sorry",
        "code": "unsafe",
        "own": "proved",
        "absent": "missing",
    }


@pytest.mark.parametrize("proof", ["sorry", "rfl", "exact 5"])
def test_every_verdict_names_the_texts_that_it_is_about(replayer: Replayer, proof: str) -> None:
    original, candidate = (f"theorem t : 1 = 1 := by {by}\r\n" for by in ("sorry", proof))
    verdict = replayer.text(original, candidate)
    texts = (original.replace("\r\n", "\n"), candidate.replace("\r\n", "\n"))
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    assert [verdict.original, verdict.candidate] == digests
    assert verdict.proved == (proof == "rfl")
    assert verdict.names == (("t",) if proof == "rfl" else ())


def test_a_verdict_has_a_certificate(replayer: Replayer) -> None:
    original = "def n : Nat := sorry\ntheorem t : n = n := by\n  sorry\n"
    candidate = "def n : Nat := 3\ntheorem t : n = n := by\n  rfl\n"
    certificate = replayer.text(original, candidate).certificate
    assert certificate is not None
    assert certificate.targets == ("n", "t")
    assert certificate.filled == ("n",)
    assert certificate.original == hashlib.sha256(original.encode()).hexdigest()
    assert certificate.candidate == hashlib.sha256(candidate.encode()).hexdigest()
    assert len(certificate.home) == 64
    assert certificate.lean == "4.28.0"
    assert "14577" in certificate.warnings[0]
    assert msgspec.json.decode(certificate.to_json(), type=type(certificate)) == certificate
    assert replayer.text(original, candidate.replace("rfl", "skip")).certificate is None


def test_scripts_bring_no_commands(replayer: Replayer) -> None:
    original = "theorem t : 1 = 1 := by\n  sorry\ntheorem u : 2 = 2 := rfl\n"
    for script in ("rfl\n\ndef x := 1", "rfl\n@[simp]", "rfl\nset_option maxRecDepth 9 in"):
        candidate = original.replace("sorry", script)
        assert replayer.text(original, candidate, ["t"]).reason == "escape", script
    assert replayer.theorem("1 = 1", "rfl\n  theorem x : 1 = 1 := rfl").reason == "escape"
    one_line = "theorem t : 1 = 1 := by sorry\n"
    assert replayer.text(one_line, one_line.replace("sorry", "rfl"), ["t"]).proved


def test_a_filled_definition_may_not_become_another_term(replayer: Replayer) -> None:
    """Recursion compiles to another term, outside the hole as well: refused, and said why."""
    original = "def f : Nat → Nat\n  | 0 => 0\n  | n + 1 => sorry\ntheorem t : f 0 = 0 := rfl\n"
    candidate = original.replace("sorry", "f n + 1")
    verdict = replayer.text(original, candidate)
    assert verdict.reason == "statement"
    assert "f" in verdict.detail


def test_other_declarations_of_the_original_must_stay_unchanged(replayer: Replayer) -> None:
    original = "theorem first : 1 + 1 = 2 := rfl\ntheorem target : 2 + 2 = 4 := by\n  sorry\n"
    weaker = "theorem first : True := trivial\ntheorem target : 2 + 2 = 4 := by\n  rfl\n"
    gone = "theorem target : 2 + 2 = 4 := by\n  rfl\n"
    swallowed = original.replace("theorem first", "-- theorem first")
    for candidate, reason in (
        (weaker, "statement"),
        (gone, "missing"),
        (swallowed.replace("sorry", "rfl"), "missing"),
    ):
        assert replayer.text(original, candidate, ["target"], declarations=True).reason == reason


def test_configurations_never_run(replayer: Replayer) -> None:
    """Lean compiles and runs them, unsafe or not; so generated ones may only be plain."""
    for script in ("simp (maxSteps := unsafeBaseIO (pure 5))", "decide +native"):
        assert replayer.theorem("1 + 1 = 2", script).reason == "escape", script
    for script in ("simp (maxSteps := 500)", "simp +arith", "decide +kernel"):
        assert replayer.theorem("1 + 1 = 2", script).proved, script


WELL_FOUNDED = """\
def half (n : Nat) : Nat := if h : n < 2 then 0 else half (n - 2) + 1
termination_by n
decreasing_by omega

theorem t : half 0 = half 0 := by
  sorry
"""


def test_originals_for_which_lean_starts_threads_are_judged_again_and_again(
    replayer: Replayer,
) -> None:
    """Memory cannot be put back underneath a thread: such a judge is replaced."""
    for _ in range(3):
        verdict = replayer.text(WELL_FOUNDED, WELL_FOUNDED.replace("sorry", "rfl"), ["t"])
        assert verdict.proved, verdict
        refused = replayer.text(WELL_FOUNDED, WELL_FOUNDED.replace("sorry", "exact x"), ["t"])
        assert refused.reason == "error", refused


def test_what_is_left_open_under_any_name_is_a_target(replayer: Replayer) -> None:
    original = "theorem eq_1 : 1 = 2 := by\n  sorry\ntheorem t : 1 = 1 := by\n  sorry\n"
    candidate = "theorem eq_1 : 1 = 2 := by\n  sorry\ntheorem t : 1 = 1 := by\n  rfl\n"
    assert replayer.text(original, candidate).reason == "sorry"
    assert replayer.text(original, candidate, ["t"]).proved


def test_sorries_side_by_side_do_not_hide_what_another_declaration_has(
    replayer: Replayer,
) -> None:
    original = (
        "theorem t : 1 = 1 := by\n  sorry\n"
        "theorem u : 2 = 2 := by\n  have h : 3 = 3 := by sorry\n  sorry\n"
    )
    candidate = original.replace("sorry", "rfl", 1)
    assert replayer.text(original, candidate, ["t"]).proved
    assert replayer.text(original, candidate, ["u"]).reason == "sorry"
    half = candidate.replace("sorry", "rfl", 1)
    assert replayer.text(original, half, ["t"]).proved
    assert replayer.text(original, half, ["u"]).reason == "sorry"


def test_a_lost_process_is_a_fault_and_the_next_check_has_another(home: LeanHome) -> None:
    with Replayer(home) as own:
        assert own.theorem("1 = 1", "rfl").proved
        for which in (0, 1):
            os.kill(own.processes.pids[which], signal.SIGKILL)
            verdict = own.theorem("1 = 1", "rfl")
            assert verdict.is_fault or verdict.proved
            assert own.theorem("1 = 1", "rfl").proved


def test_a_process_that_has_grown_is_ended_and_the_next_check_has_another(
    replayer: Replayer,
) -> None:
    assert replayer.theorem("1 = 1", "rfl").proved
    heaps = sorted(kept.heap_bytes for kept in replayer.processes.all())
    assert heaps[0] > 0
    before = set(replayer.processes.pids)
    replayer.processes.end_large(heaps[-1])
    assert set(replayer.processes.pids) == before
    replayer.processes.end_large(heaps[-1] - 1)
    assert len(replayer.processes.pids) < len(before)
    assert replayer.theorem("1 = 1", "rfl").proved


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"abc", b"abc", ()),
        (b"a\nsorry\nb\n", b"a\nrfl\nb\n", ((1, 6),)),
        (b"x", b"x y", ((0, 3),)),
        (b"t := by sorry\n", b"t := by rfl\n", ((7, 12),)),
        (b"by sorry\n", b"by simp; sorry\n", ((2, 15),)),
        (b"a sorry\nb sorry\n", b"a\n  x\nb sorry\n", ((1, 6),)),
        (b"a sorry\nb sorry\n", b"a\n  x\nb\n  y\n", ((1, 6), (7, 12))),
        # Sorries with little or no text between them; some of them stay.
        (b"a sorry\nb\n sorry\n sorry\n", b"a x\nb\n sorry\n sorry\n", ((2, 3),)),
        (b"a\n by sorry\n sorry\n", b"a\n by x\n sorry\n", ((6, 7),)),
        (b"a\n. sorry\n. sorry\n", b"a\n. x\n  . y\n. sorry\n", ((4, 11),)),
        (b"a\nb\n", b"a\n", ((2, 2),)),
        (b"a\nb\nc\nd\n", b"A\nb\nc\nD\nE\n", ((0, 1), (6, 9))),
        (b"", b"new\n", ((0, 4),)),
    ],
)
def test_the_changed_stretches_are_whole_words(
    old: bytes, new: bytes, expected: tuple[tuple[int, int], ...]
) -> None:
    assert find_additions(old, new) == expected


_TARGET = "theorem target (a b : Nat) : a + b = b + a := by\n  sorry\n"
_FALSE = "theorem broken : 1 = 2 := by decide\n"
_NO_TYPE = 'theorem nowhere : (2 : Nat) = "two" := rfl\n'
_BAD = "def bad : Nat := undefinedThing + 1\n"


@pytest.mark.parametrize(
    "original",
    [
        _FALSE + _TARGET,
        _TARGET + _FALSE,
        _NO_TYPE + _TARGET + _BAD,
        _BAD + _TARGET,
        "#eval nope\nexample : 1 = 2 := rfl\n" + _TARGET,
        "theorem oops : 1 = := by\n" + _TARGET,
        _TARGET + "open Nowhere\n",
    ],
)
def test_an_error_that_does_not_concern_the_target_does_not_count(
    replayer: Replayer, original: str
) -> None:
    # It has more lines than the original, so later text moves.
    candidate = original.replace("sorry", "skip\n  omega")
    assert replayer.text(original, candidate, ["target"]).proved


@pytest.mark.parametrize(
    ("original", "proof", "reason"),
    [
        (_BAD + "theorem target : bad = bad := by\n  sorry\n", "rfl", "original"),
        ("open Nowhere\n" + _TARGET, "omega", "original"),
        ("structure P where\ninstance : Add P := nope\n" + _TARGET, "omega", "proved"),
        (
            "structure P where\ninstance : Add P := nope\n"
            "theorem target (a : P) : a + a = a + a := by\n  sorry\n",
            "rfl",
            "original",
        ),
        ('notation "N" => nope.\n' + _TARGET, "omega", "original"),
        # An error of the original's words in the target itself, which leaves a `sorry`.
        ("theorem other : 1 = 2 := by exact nope\n" + _TARGET, "exact nope", "error"),
        (_TARGET + "theorem other : 1 = 2 := by exact nope\n", "exact nope", "error"),
        # An error that the original has is used up by hiding the one behind it.
        (_TARGET + _FALSE + "theorem later : 1 = 1 := rfl\n", "omega /-", "error"),
        (_FALSE + "theorem target : 1 = 2 := by\n  sorry\n", "exact broken", "sorry"),
    ],
)
def test_an_error_hides_nothing(replayer: Replayer, original: str, proof: str, reason: str) -> None:
    head, tail = original.split("sorry")
    assert replayer.text(original, f"{head}{proof}{tail}", ["target"]).reason == reason


def test_remaining_sorries_are_named(replayer: Replayer) -> None:
    lines = "theorem a : 1 = 1 := sorry\ntheorem b : 2 = 2 := sorry\ntheorem c : 2 = 2 := sorry\n"
    candidate = lines.replace("1 = 1 := sorry", "1 = 1 := rfl")
    candidate = candidate.replace("c : 2 = 2 := sorry", "c : 2 = 2 := b")
    verdict = replayer.text(lines, candidate, ["a", "c"])
    assert (verdict.reason, verdict.detail) == ("sorry", "it rests on the sorry of b")
    candidate = lines.replace("c : 2 = 2 := sorry", "c : 2 = 2 := b")
    verdict = replayer.text(lines, candidate)
    assert (verdict.reason, verdict.detail) == ("sorry", "it rests on the sorry of a, b")
