-- snippet: print-axioms
theorem em' (p : Prop) : p ∨ ¬p := Classical.em p
#print axioms em'
-- says: 'em''

-- snippet: print-axioms-none
theorem plain : 1 + 1 = 2 := rfl
#print axioms plain
-- says: 'plain' does not depend on any axioms

-- snippet: print-axioms-of-sorry
theorem gap : 1 = 2 := sorry
#print axioms gap
-- says: depends on axioms: [sorryAx]

-- snippet: print-axioms-own
axiom magic : ∀ n : Nat, n = 0
theorem consequence : 3 = 0 := magic 3
#print axioms consequence
-- says: depends on axioms: [magic]

-- snippet: check-and-print
#check Nat.add_comm
-- says: Nat.add_comm
#check (fun x : Nat => x + 1)
-- says: Nat → Nat
#print Nat.add
-- says: Nat.add
#check @id
-- says: id

-- snippet: print-own
def answer : Nat := 42
#print answer
-- says: def answer : Nat
structure Box where
  value : Nat
#print Box
-- says: structure Box

-- snippet: reduce
def addOne (n : Nat) : Nat := n + 1
#reduce addOne 4
-- says: 5
#reduce fun n : Nat => addOne n
-- says: fun n

-- snippet: eval-simple
#eval 1 + 2
-- value: 3
#eval "abc".length
-- value: 3
#eval [1, 2, 3].map (· + 1)
-- value: [2, 3, 4]
#eval (3 : Int) - 5
-- value: -2

-- snippet: eval-own
def square (n : Nat) : Nat := n * n
#eval square 12
-- value: 144
#eval (List.range 4).map square
-- value: [0, 1, 4, 9]

-- snippet: eval-io
def greet (name : String) : IO Unit := IO.println s!"Hello, {name}!"
#eval greet "world"
-- value: Hello, world!

-- snippet: main
def main (args : List String) : IO UInt32 := do
  for arg in args do
    IO.println arg
  let stdin ← IO.getStdin
  let line ← stdin.getLine
  if line.isEmpty then return 1
  IO.eprintln s!"read {line.length}"
  return 0

-- snippet: io-refs
def counter : IO Nat := do
  let ref ← IO.mkRef 0
  for i in [1, 2, 3] do
    ref.modify (· + i)
  ref.get

-- snippet: set-option-in
set_option maxRecDepth 2000 in
theorem deep : (List.range 100).length = 100 := by simp

set_option linter.unusedVariables false in
def ignoring (x : Nat) : Nat := 3

-- snippet: set-option-file
set_option autoImplicit false
set_option pp.all true
def strict {α : Type} (a : α) : α := a
set_option pp.all false

-- snippet: doc-comments
/-! # A file about numbers -/

/-- The successor, **twice**. -/
def plusTwo (n : Nat) : Nat := n + 2

/- plain /- nested -/ comment -/
/-- A theorem with a docstring. -/
theorem plusTwo_eq (n : Nat) : plusTwo n = n + 2 := rfl -- trailing

-- snippet: opaque-and-axiom
opaque hidden : Nat
axiom choiceFn : (Nat → Prop) → Nat
axiom choiceFn_spec (p : Nat → Prop) (h : ∃ n, p n) : p (choiceFn p)
theorem hidden_self : hidden = hidden := rfl
noncomputable def chosen : Nat := choiceFn (· > 3)

-- snippet: partial-def
partial def collatz (n : Nat) : List Nat :=
  if n ≤ 1 then [n]
  else n :: collatz (if n % 2 == 0 then n / 2 else 3 * n + 1)

-- snippet: unsafe-def
unsafe def spin : Nat → Nat := fun n => spin (n + 1)
unsafe def castToBool (a : Nat) : Bool := unsafeCast a

-- snippet: implemented-by
def slowLength (xs : List α) : Nat := xs.foldl (fun n _ => n + 1) 0
@[implemented_by slowLength]
def lengthModel (xs : List α) : Nat := xs.length
theorem lengthModel_nil : lengthModel ([] : List Nat) = 0 := rfl

-- snippet: inline-attributes
@[inline] def compose (f : β → γ) (g : α → β) (x : α) : γ := f (g x)
@[specialize] def iterate (f : α → α) : Nat → α → α
  | 0, a => a
  | n + 1, a => iterate f n (f a)
@[always_inline, inline] def quick (n : Nat) := n
@[noinline] def slow (n : Nat) := n
@[macro_inline] def orElse' (a : Bool) (b : Bool) : Bool := if a then true else b

-- snippet: csimp
def sumList (xs : List Nat) : Nat := xs.foldr (· + ·) 0
def sumListFast (xs : List Nat) : Nat := xs.foldr (· + ·) 0
@[csimp] theorem sumList_eq : @sumList = @sumListFast := rfl

-- snippet: extern
@[extern "my_c_add"]
def cAdd (a b : Nat) : Nat := a + b
theorem cAdd_comm (a b : Nat) : cAdd a b = cAdd b a := Nat.add_comm a b

-- snippet: guard-messages
#guard 1 + 1 == 2
/-- info: 3 -/
#guard_msgs in
#eval 1 + 2

-- snippet: example-block
example : ∃ n : Nat, n * n = 49 := ⟨7, rfl⟩
example (p : Prop) (h : p) : p := by assumption
example : True := trivial

-- snippet: synth-and-instances
#synth Inhabited Nat
-- says: instInhabitedNat
instance (priority := low) lowInst : Inhabited (Nat → Nat) := ⟨id⟩
attribute [instance] Classical.propDecidable

-- snippet: initialize-free-io-error
inductive AppError where
  | notFound (path : String)
  | parse (line : Nat)

abbrev App := ExceptT AppError (StateM Nat)

def App.fail (e : AppError) : App α := throw e
def App.tick : App Unit := modify (· + 1)
def App.work (n : Nat) : App Nat := do
  App.tick
  if n == 0 then App.fail (.parse 3)
  return n + (← get)

-- snippet: thunk-and-task
def lazyValue : Thunk Nat := Thunk.mk fun _ => 10 + 20
def forced : Nat := lazyValue.get
def spawned : Task Nat := Task.spawn fun _ => 3

-- snippet: has-lift-monads
def logged (n : Nat) : StateT (List String) (Except String) Nat := do
  modify ("visited" :: ·)
  if n > 10 then throw "too big"
  match n with
  | 0 => return 0
  | k + 1 => do
    let r ← logged k
    return r + 1

-- snippet: do-patterns
def sumPairs (ps : List (Nat × Nat)) : Option Nat := do
  let mut acc := 0
  for (a, b) in ps do
    unless a ≤ b do failure
    acc := acc + (b - a)
  let some r := some acc | none
  return r

-- snippet: pipeline
def pipeline (s : String) : Nat :=
  s.toList |>.filter Char.isDigit |>.map (fun c => c.toNat - '0'.toNat) |>.foldl (· + ·) 0
def applied := (List.map · [1, 2, 3]) <| fun n => n + 1

-- snippet: if-let
def describe? (o : Option Nat) : String :=
  if let some n := o then
    if n > 10 then "big" else "small"
  else "none"

def first (xs : List Nat) : Nat := match xs with
  | x :: _ => x
  | [] => 0

-- snippet: nat-lemma-library
namespace Arithmetic
theorem add_sq (a : Nat) : a * a + 2 * a + 1 = (a + 1) * (a + 1) := by
  simp [Nat.add_mul, Nat.mul_add]; omega
@[simp] theorem sub_self' (a : Nat) : a - a = 0 := Nat.sub_self a
theorem le_of_sub_eq_zero' {a b : Nat} : a - b = 0 → a ≤ b := by omega
end Arithmetic
open Arithmetic
#print axioms add_sq
-- says: 'Arithmetic.add_sq'

-- snippet: lean-meta-imports
import Lean
open Lean Meta

def constantsNamed (env : Environment) (n : Name) : Bool := env.contains n
def mkTwo : Expr := mkNatLit 2

-- snippet: elab-command
import Lean
open Lean Elab Command

elab "#hello" : command => logInfo "hello"
#hello
-- value: hello
-- runs

-- snippet: elab-tactic
import Lean
open Lean Elab Tactic

elab "close_it" : tactic => do
  let g ← getMainGoal
  g.assumption

theorem by_close (p : Prop) (h : p) : p := by close_it
-- runs

-- snippet: simproc
import Lean
open Lean Meta Simp in
simproc_decl reduceFoo (0 + _) := fun _ => do return .continue
-- runs

-- snippet: run-cmd
import Lean
run_cmd Lean.logInfo "ran"
-- value: ran
