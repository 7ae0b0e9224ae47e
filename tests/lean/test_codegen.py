"""Generated declarations get no code: nothing of a candidate can be run, and proofs need none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.lean.conftest import state
from treewright.lean.hosts.wasm.home import LeanHome
from treewright.lean.session.answers import CheckResult, Diagnostic, TacticError
from treewright.lean.session.host_session import HostSession

pytestmark = pytest.mark.xdist_group("lean-sandbox")

# Running it would end the session.
EVIL = "(Array.emptyWithCapacity 1073741824 : Array Nat).size"
_COMMANDS = ("declaration", "mutual", "eval", "section", "end", "open")


@pytest.fixture(scope="module")
def session(home: LeanHome) -> Iterator[HostSession]:
    """One with a definition of the user's."""
    with HostSession(home, preamble="def mine : Nat := 40 + 2") as opened:
        yield opened


def _check(lean: HostSession, text: str, generated: Sequence[str]) -> list[Diagnostic]:
    """Elaborate a partly generated text, under rules that forbid nothing."""
    ranges = [
        [start := text.encode().index(part.encode()), start + len(part.encode())]
        for part in generated
    ]
    rules = {
        "ranges": ranges,
        "commands": [f"Lean.Parser.Command.{name}" for name in _COMMANDS],
        "kinds": [],
        "atoms": [],
        "options": [],
        "attributes": ["instance", "reducible", "simp", "inline", "macro_inline"],
    }
    done = lean.check_file(text, rules=rules)
    assert isinstance(done, CheckResult), done
    assert not done.stopped, done.stopped
    return list(done.diagnostics)


def _refused(found: Sequence[Diagnostic]) -> bool:
    """An error; or Lean, which takes a failure to compile for reported, leaves a `sorry`."""
    return any(message.severity == "error" or message.kind == "hasSorry" for message in found)


@pytest.mark.parametrize(
    "declaration",
    [
        f"def evil : Nat := {EVIL}",
        f"@[reducible] def evil : Nat := {EVIL}",
        f"@[macro_inline] def inner : Nat := {EVIL}\ndef evil : Nat := inner",
        f"instance evil : Nat := {EVIL}",
        f"abbrev evil : Nat := {EVIL}",
        f"def evil : Nat := help 3 where help : Nat → Nat | 0 => 0 | n + 1 => help n + {EVIL}",
        f"def evil : Nat := let rec help : Nat → Nat | 0 => {EVIL} | n + 1 => help n; help 1",
        f"mutual\ndef evil : Nat := {EVIL}\ndef other : Nat := 1\nend",
        f"def evil : Nat := match {EVIL} with | 0 => 1 | n => n",
        f"partial def f (n : Nat) : Nat := f n + {EVIL}\ndef evil : Nat := f 0",
    ],
)
def test_a_generated_declaration_is_never_evaluated(lean: HostSession, declaration: str) -> None:
    goal = "theorem target : Lean.reduceNat evil = 0 := by rfl"
    found = _check(lean, f"{declaration}\n{goal}\n", [declaration, goal])
    assert _refused(found), found
    # Nor by trusted text that comes after it.
    found = _check(lean, f"{declaration}\n#eval evil\n", [declaration])
    assert not [message for message in found if message.severity == "information"]


def test_the_users_own_declarations_run(lean: HostSession) -> None:
    proof = "theorem target : Lean.reduceNat mine = 42 := by rfl"
    text = f"def mine : Nat := 40 + 2\n#eval mine\n{proof}\ndef after := mine + 1\n#eval after\n"
    found = _check(lean, text, [proof])
    assert [message.text for message in found] == ["42", "43"]


def test_generated_definitions_need_not_be_computable(lean: HostSession) -> None:
    definitions = """def doubled (xs : List Nat) : List Nat := xs.map (· * 2) ++ xs
def total (xs : Array Nat) : Nat := Id.run do
  let mut sum := 0
  for x in xs do sum := sum + x
  return sum
def chosen : Nat := Classical.choice ⟨1⟩
def half : Nat → Nat
  | 0 => 0
  | 1 => 0
  | n + 2 => half n + 1
structure Point where
  x : Nat
  y : Nat := x
deriving Repr, DecidableEq
instance : Add Point := ⟨fun p q => { x := p.x + q.x }⟩
structure Small where
  value : Nat
  small : value < 10 := by first | decide | simp [Nat.lt_irrefl] at *
def three : Small := { value := 3 }
theorem half_two : half 2 = 1 := by decide
theorem twice : doubled [1] = [2, 1] := rfl
theorem simple (a b : Nat) : a + b = b + a := by
  simp (config := { maxSteps := 1000 }) [Nat.add_comm]
theorem graced (a b : Nat) : a + b = b + a := by grind (splits := 3)"""
    assert _check(lean, definitions, [definitions]) == []


def test_trusted_text_may_rest_on_generated_definitions(lean: HostSession) -> None:
    generated = "def f (n : Nat) : Nat := n + 1"
    text = f"{generated}\ndef g := f 3\ndef h := 4\n#eval h\nexample : g = 4 := rfl\n"
    assert [message.text for message in _check(lean, text, [generated])] == ["4"]


def test_tactics_run_nothing_of_their_own(session: HostSession) -> None:
    start = state(session.start("∀ a b : Nat, a + b = b + a"))
    for tactic in (
        f"simp (maxSteps := {EVIL}) [Nat.add_comm]",
        f"simp (config := {{ maxSteps := {EVIL} }}) [Nat.add_comm]",
        f"simp (config := (fun n => {{ maxSteps := n }}) {EVIL}) [Nat.add_comm]",
        f"(have : {EVIL} = 0 := by native_decide); exact Nat.add_comm",
    ):
        assert isinstance(session.run_tactic(start, tactic), TacticError), tactic


@pytest.mark.parametrize(
    "tactic",
    [
        "simp (config := { maxSteps := 1000, decide := true }) [Nat.add_comm]",
        "simp (maxSteps := 2 ^ 10) +contextual [Nat.add_comm]",
        "simp (config := { (default : Lean.Meta.Simp.Config) with maxSteps := 99 }) [Nat.add_comm]",
        "grind (splits := 3)",
        "intro a b; omega",
        "intro a b; rw (config := { occs := .pos [1] }) [Nat.add_comm]",
        "intro a b; have : Lean.reduceNat mine = 42 := rfl; exact Nat.add_comm a b",
    ],
)
def test_configurations_and_trusted_code_work_in_tactics(session: HostSession, tactic: str) -> None:
    start = state(session.start("∀ a b : Nat, a + b = b + a"))
    assert state(session.run_tactic(start, tactic)).complete
