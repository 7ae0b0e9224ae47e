"""Text that is not the name, module, binder, statement or script it claims to be is refused."""

from __future__ import annotations

import pytest

from treewright.kernel.errors import UsageError
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.host_session import HostSession
from treewright.lean.session.inputs import (
    Theorem,
    check_script,
    check_theorem,
    header_of,
    identifier,
    is_identifier,
)

pytestmark = pytest.mark.xdist_group("lean-session")


@pytest.mark.parametrize(
    "name", ["x", "Nat.add_comm", "h₁", "α", "foo!", "a?", "«end»", "A.«b c».d", "é", "ℕ", "_x'"]
)
def test_names_of_lean_are_names(name: str) -> None:
    assert identifier(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "a.", ".a", "a b", "a\nb", "1a", "a.1", "λ", "«»", "«a\nb»", "a]", "a;b"),
        *("a--b", "«a»b", "x\u202ey", "a" * 2000, "a (b)", "«\x1b»"),
    ],
)
def test_other_text_is_no_name(name: str) -> None:
    assert not is_identifier(name)
    with pytest.raises(UsageError, match="not a name"):
        identifier(name)


def test_imports_are_module_names() -> None:
    assert header_of(["Init", "Std.Data.HashMap"]) == "import Init\nimport Std.Data.HashMap\n"
    for module in ["Init\ninstance : OfNat Nat 2 := ⟨1⟩\n", "Init -- x", "", "all Init", "Init "]:
        with pytest.raises(UsageError, match="not the name of a Lean module"):
            header_of([module])


def test_a_session_takes_module_names_only(home: LeanHome) -> None:
    with pytest.raises(UsageError, match="not the name of a Lean module"):
        HostSession(home, ["Init\ninstance : OfNat Nat 2 := ⟨1⟩\n"])


@pytest.mark.parametrize(
    ("statement", "hypotheses"),
    [
        ("1 = 1", ()),
        ("  x = x\n", ("x : Nat",)),
        ("x + y = y + x", ("x y : Nat",)),
        ("xs ++ [] = xs", ("{α : Type u}", "[Inhabited α]", "xs : List α", "⦃n : Nat⦄")),
        ("∀ s : String, s = s", ('h : ")" = ")"',)),
        ("x = x", ("x : Nat := 0",)),
        ("True", ("h : (fun x : Nat => x) = id", "«odd name» : Nat")),
        ("let y := 1\n  y = 1", ()),
        ("x = x /- why -/ ∧ True", ("x : Nat /- a number -/",)),
    ],
)
def test_statements_are_statements(
    lean: HostSession, statement: str, hypotheses: tuple[str, ...]
) -> None:
    check_theorem(lean, Theorem("foo.bar", statement, hypotheses))


@pytest.mark.parametrize(
    ("statement", "hypotheses"),
    [
        ("1 = 2", ("x : Nat) : True := trivial theorem bar (y : Nat",)),
        ("1 = 2", ("x : Nat) (y : Nat",)),
        ("1 = 2", ("(x : Nat) (y : Nat)",)),
        ("1 = 2", ("(x : Nat) : True := trivial theorem bar (y : Nat)",)),
        ("1 = 2", ("x : Nat -- ", "h : False")),
        ("1 = 2", ("x : Nat /-", "-/ y : Nat")),
        ("1 = 2", ("{α : Type} : True := trivial --",)),
        ("1 = 2", ("",)),
        ("1 = 1 := rfl theorem x : 1 = 2", ()),
        ("1 = 1 := rfl\n\ntheorem x : 1 = 2", ()),
        ("1 = 1 := by rfl --", ()),
        ("1 = 1 --", ()),
        ("1 = 1 := sorry where x : Nat", ()),
        ("1 = 1\n| x", ()),
        ("", ()),
        ("1 = 1) ∧ (2 = 2", ()),
        ("1 = 1 /-", ()),
    ],
)
def test_other_text_is_no_statement(
    lean: HostSession, statement: str, hypotheses: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError):
        check_theorem(lean, Theorem("foo", statement, hypotheses))


def test_the_text_in_front_is_whole_and_does_not_have_the_name(lean: HostSession) -> None:
    quick = Theorem("foo", "twice 1 = 2")
    check_theorem(lean, quick, after='import Init\n\nnotation "twice" n => n + n\n')
    for preamble, message in [
        ("theorem foo : True := trivial\nnamespace Other", "called foo"),
        ("/- not closed", "unterminated comment"),
        ("#exit", "ends early"),
        ("theorem bar : 1 = 2 := rfl", "does not elaborate"),
        ("private theorem foo : True := trivial", "called foo"),
    ]:
        with pytest.raises(UsageError, match=message):
            check_theorem(lean, Theorem("foo", "1 = 1"), after=f"import Init\n{preamble}\n")


@pytest.mark.parametrize(
    "script",
    [
        "rfl",
        "intro x\nsimp",
        "  intro x\n  simp",
        "have h : 1 = 1 := by\n  rfl\nexact h",
        "constructor\n· rfl\n· rfl",
        "cases h with\n| inl a => exact a\n| inr b => exact b",
        "(rfl)\n-- done",
        "open Nat in\nsimp [add_comm]",
        "first\n  | rfl\n  | simp",
    ],
)
def test_scripts_are_scripts(lean: HostSession, script: str) -> None:
    check_script(lean, script)


@pytest.mark.parametrize(
    "script",
    [
        "",
        "-- nothing",
        "rfl\ntheorem x : 1 = 2 := sorry",
        "rfl\n\ndef x := 1",
        "rfl)\n(rfl",
        "rfl) <;> (rfl",
        "  rfl\nopen Nat in rfl",
        "rfl /-",
        "rfl\n#eval 1",
        "rfl\nend Foo",
        "trivial\ninstance : OfNat Nat 2 := ⟨1⟩",
        "exact by rfl where x := 1",
        "rfl\n@[simp] theorem x : True := trivial",
        "\trfl\nset_option maxHeartbeats 1 in\nrfl",
    ],
)
def test_other_text_is_no_script(lean: HostSession, script: str) -> None:
    with pytest.raises(UsageError):
        check_script(lean, script)
