"""The module system and metaprograms of libraries, in miniature, on every host."""

from __future__ import annotations

import pytest

from tests.lean.conformance.test_texts import checked
from treewright.lean import extract_sorries, replace_sorry
from treewright.lean.session.host_session import HostSession
from treewright.lean.verify.replayer import Replayer

MODULE = """module
public import Init.Data.List.Basic
import Init.Data.Nat.Basic
@[expose] public section
def shown (n : Nat) : Nat := n + 1
theorem shown_eq (n : Nat) : shown n = n + 1 := rfl
end
public section
def hidden (n : Nat) : Nat := n + 2
theorem hidden_eq (n : Nat) : hidden n = n + 2 := by rfl
end
def own (n : Nat) : Nat := n + 3
private theorem own_eq (n : Nat) : own n = n + 3 := rfl
namespace Space
public structure Pair where
  left : Nat
  private right : Nat
deriving Inhabited
public theorem Pair.left_eq (p : Pair) : p.left = p.left := rfl
end Space
open Space in
example (p : Pair) : p.right = p.right := rfl
inductive Colour
  | red
  | blue
deriving DecidableEq, Repr
infixr:65 " ⊹ " => Nat.add
theorem two (c : Colour) : c = .red ∨ c = .blue := by cases c <;> simp
theorem one_open : own 0 = 3 := by
  sorry
public theorem public_open : hidden 0 = 2 ⊹ 0 := by
  sorry
private theorem private_open : shown 0 = 1 := by
  sorry
"""
METAPROGRAMS = {
    "macro with separators": """syntax "list![" term,* "]" : term
macro_rules | `(list![$xs,*]) => `([$xs,*])
example : list![1, 2] = [1, 2] := rfl
""",
    "macro over the parts of a list": """syntax "sum![" term,+ "]" : term
macro_rules
  | `(sum![$x]) => `($x)
  | `(sum![$x, $xs,*]) => `($x + sum![$xs,*])
example : sum![1, 2, 3] = 6 := rfl
""",
    "tactics with separators": """import Lean.Elab.Tactic
open Lean Elab Tactic
syntax:1 (name := each) tactic " <;;> " "[" sepBy(tactic, ", ") "]" : tactic
elab_rules : tactic
  | `(tactic| $t:tactic <;;> [$ts,*]) => do
    evalTactic t
    let goals := (← getUnsolvedGoals).toArray
    let all := goals.zip ts.getElems
    setGoals (← all.foldlM (fun left (goal, t) => return left ++ (← evalTacticAt t goal)) [])
macro_rules | `(tactic| $t:tactic <;;> []) => `(tactic| $t:tactic)
example (p q : Prop) (h : p) (k : q) : p ∧ q := by constructor <;;> [exact h, exact k]
syntax "run! " "{" sepBy1(tactic, "; ") "}" : tactic
macro_rules | `(tactic| run! { $ts;* }) => `(tactic| ($ts;*))
example (p : Prop) : p → p := by run! { intro h; exact h }
""",
    "tactic by elab": """import Lean.Elab.Tactic
open Lean Elab Tactic
def closes (goal : MVarId) : MetaM Bool := goal.assumptionCore
elab "mine" : tactic => do
  unless ← closes (← getMainGoal) do throwError "no hypothesis fits {← getMainTarget}"
example (p : Prop) (h : p) : p := by mine
""",
    "tactic by macro": """macro "both" t:tactic : tactic => `(tactic| constructor <;> $t)
example : True ∧ True := by both trivial
""",
    "command by elab": """import Lean.Elab.Command
open Lean Elab Command
elab "rename_as " new:ident old:ident : command => do
  let name ← liftCoreM <| realizeGlobalConstNoOverload old
  let info ← getConstInfo name
  let declared := (← getCurrNamespace) ++ new.getId
  liftCoreM <| addDecl <| .thmDecl {
    name := declared, levelParams := info.levelParams, type := info.type
    value := .const name (info.levelParams.map .param) }
rename_as my_comm Nat.add_comm
example (a b : Nat) : a + b = b + a := my_comm a b
""",
    "notes and documentation": """import Lean.Elab.Command
open Lean Elab Command
syntax (name := note) "a_note " str ppSpace docComment : command
elab_rules : command | `(a_note $name:str $text:docComment) => do
  logInfo m!"{name.getString}: {text.getDocString.trimAscii}"
a_note "it" /-- is said -/
""",
    "attribute and extension": """import Lean.Elab.Command
open Lean
initialize seen : SimplePersistentEnvExtension Name NameSet ←
  registerSimplePersistentEnvExtension {
    addEntryFn := NameSet.insert
    addImportedFn := fun all => all.foldl (fun s names => names.foldl NameSet.insert s) {} }
initialize registerBuiltinAttribute {
  name := `my_attribute
  descr := "remembers a declaration"
  add := fun name _ _ => modifyEnv (seen.addEntry · name) }
""",
    "code of generic functions": """import Std.Data.HashMap
def total (xs : Array Nat) : Nat := Id.run do
  let mut sum := 0
  for x in xs ++ xs do sum := sum + x
  return sum
/-- info: 12 -/
#guard_msgs in #eval total #[1, 2, 3]
/-- info: [(1, 2)] -/
#guard_msgs in #eval (Std.HashMap.ofList [(1, 2)] : Std.HashMap Nat Nat).toList
""",
    "module with metaprograms": """module
public meta import Lean.Elab.Tactic
public meta section
open Lean Elab Tactic
def helper : TacticM Unit := do evalTactic (← `(tactic| trivial))
elab "helped" : tactic => helper
end
macro "more" : tactic => `(tactic| helped)
local macro "most" : tactic => `(tactic| more)
theorem t : True := by most
""",
}
"""Texts that have no errors in Lean."""


def _needs_modules(session: HostSession) -> None:
    if tuple(int(part) for part in session.info.lean.split("-")[0].split(".")[:2]) < (4, 28):
        pytest.skip("the syntax is newer than this Lean")


def test_a_module_has_its_scopes(session: HostSession) -> None:
    _needs_modules(session)
    result = checked(session, MODULE)
    assert result.errors == ()
    assert result.unproved == ("one_open", "private_open", "public_open")
    lost = checked(session, "module\ndef own := 1\npublic def use : Fin own := 0\n")
    assert lost.errors, "what is private is not for a public statement"


@pytest.mark.parametrize("target", ["one_open", "public_open", "private_open"])
def test_every_sorry_of_a_module_is_a_target(
    session: HostSession, check: Replayer, target: str
) -> None:
    _needs_modules(session)
    places = {place.declaration: place for place in extract_sorries(session, MODULE)}
    assert set(places) == {"one_open", "public_open", "private_open"}
    done = session.run_tactic(places[target].states[0], "rfl")
    assert getattr(done, "complete", False), done
    verdict = check.text(MODULE, replace_sorry(MODULE, places[target], "rfl"), [target])
    assert verdict.proved, verdict
    assert verdict.names == (target,)


@pytest.mark.parametrize("name", METAPROGRAMS)
def test_metaprograms_of_libraries_run(session: HostSession, name: str) -> None:
    _needs_modules(session)
    result = checked(session, METAPROGRAMS[name])
    assert [d for d in result.diagnostics if d.severity in ("error", "warning")] == []
