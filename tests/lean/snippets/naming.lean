-- snippet: infixr-own-function
def comp (f : β → γ) (g : α → β) : α → γ := fun x => f (g x)
infixr:80 " ⊚ " => comp

theorem comp_assoc (f : γ → δ) (g : β → γ) (h : α → β) : f ⊚ g ⊚ h = (f ⊚ g) ⊚ h := rfl

-- snippet: notation-local
local notation "‖" x "‖" => Int.natAbs x
example : ‖(-3 : Int)‖ = 3 := rfl

-- snippet: prefix-postfix
def double (n : Nat) : Nat := n + n
prefix:max "⇈" => double
def factorial : Nat → Nat
  | 0 => 1
  | n + 1 => (n + 1) * factorial n
postfix:max "!'" => factorial

example : ⇈ 3 = 6 := rfl
example : 4 !' = 24 := by decide

-- snippet: macro-term
macro "twice!" x:term:max : term => `($x + $x)
example : twice! 4 = 8 := rfl

-- snippet: macro-tactic
macro "finish" : tactic => `(tactic| first | rfl | omega | simp_all)
theorem finished (a b : Nat) (h : a = b) : b = a := by finish

-- snippet: macro-rules
syntax "maxOf " term:max " and " term:max : term
macro_rules
  | `(maxOf $a and $b) => `(if $a ≤ $b then $b else $a)
example : maxOf 3 and 7 = 7 := rfl

-- snippet: custom-syntax-category
declare_syntax_cat arith
syntax num : arith
syntax arith " plus " arith : arith
syntax "[arith| " arith "]" : term
macro_rules
  | `([arith| $n:num]) => `($n)
  | `([arith| $a plus $b]) => `([arith| $a] + [arith| $b])
example : [arith| 1 plus 2] = 3 := rfl

-- snippet: namespaces
namespace Geometry
structure Point where
  x : Nat
  y : Nat
namespace Point
def origin : Point := ⟨0, 0⟩
protected def add (p q : Point) : Point := ⟨p.x + q.x, p.y + q.y⟩
end Point
end Geometry

open Geometry in
def shifted (p : Point) : Point := p.add ⟨1, 1⟩

#check @Geometry.Point.add
-- says: Geometry.Point.add : Geometry.Point → Geometry.Point → Geometry.Point

-- snippet: private-and-protected
namespace Bank
private def secret : Nat := 42
protected def rate : Nat := secret / 2
theorem rate_eq : Bank.rate = 21 := rfl
end Bank

#check Bank.rate
-- says: Bank.rate : Nat

-- snippet: private-theorem
private theorem helper (n : Nat) : n < n + 1 := Nat.lt_succ_self n
theorem public_one (n : Nat) : n ≤ n + 1 := Nat.le_of_lt (helper n)

-- snippet: section-variables
section
variable {α : Type u} [BEq α] (default : α)

def countOf (a : α) : List α → Nat
  | [] => 0
  | x :: xs => (if x == a then 1 else 0) + countOf a xs

def headOr (xs : List α) : α := xs.headD default
end

#check @headOr
-- says: headOr

-- snippet: open-renaming
namespace Alpha
def value := 1
def other := 2
end Alpha
open Alpha renaming value → alphaValue
open Alpha hiding value
open Alpha (other)
example : alphaValue + other = 3 := rfl

-- snippet: open-scoped
namespace Ops
scoped infixl:65 " ⊞ " => Nat.add
scoped notation "two" => 2
end Ops

open scoped Ops in
example : 1 ⊞ two = 3 := rfl

-- snippet: export-names
namespace Inner
inductive Direction where | left | right
export Direction (left right)
def flip : Direction → Direction
  | left => right
  | right => left
end Inner

-- snippet: root-names
namespace Nat
theorem _root_.outside_nat : (1 : Nat) + 1 = 2 := rfl
def isSmall (n : Nat) : Bool := n < 10
end Nat
example : (3).isSmall = true := rfl
#check outside_nat
-- says: outside_nat : 1 + 1 = 2

-- snippet: dot-notation
def Nat.triple (n : Nat) : Nat := 3 * n
def List.second? : List α → Option α
  | _ :: b :: _ => some b
  | _ => none
example : (4).triple = 12 := rfl
example : [1, 2].second? = some 2 := rfl

-- snippet: where-helper
def fibonacci (n : Nat) : Nat := go n 0 1
where
  go : Nat → Nat → Nat → Nat
    | 0, a, _ => a
    | n + 1, a, b => go n b (a + b)

#eval fibonacci 20
-- value: 6765

-- snippet: let-rec
def reverseFast (xs : List α) : List α :=
  let rec loop : List α → List α → List α
    | [], acc => acc
    | y :: ys, acc => loop ys (y :: acc)
  loop xs []

-- snippet: auto-bound-implicit
def twiceMap (f : α → α) (xs : List α) : List α := (xs.map f).map f
theorem twiceMap_nil (f : α → α) : twiceMap f [] = [] := rfl

-- snippet: include-omit
section
variable (n : Nat) (h : 0 < n)
include h in
theorem ne_zero' : n ≠ 0 := by omega
omit h in
theorem self_le : n ≤ n := Nat.le_refl n
end

-- snippet: french-names
def «a name with spaces» : Nat := 3
theorem «it is three» : «a name with spaces» = 3 := rfl

-- snippet: unicode-names
def α₁ : Nat := 1
def f' (β : Nat) : Nat := β + α₁
theorem f'_one : f' 1 = 2 := rfl

-- snippet: alias-and-deprecated
theorem add_swap (a b : Nat) : a + b = b + a := Nat.add_comm a b
@[deprecated add_swap (since := "2025-01-01")]
theorem swap_add (a b : Nat) : a + b = b + a := add_swap a b

-- snippet: same-name-in-namespaces
namespace A
def f (n : Nat) := n + 1
end A
namespace B
def f (n : Nat) := n * 2
theorem f_of_af (n : Nat) : f (A.f n) = 2 * n + 2 := by simp [f, A.f]; omega
end B

-- snippet: abbrev-and-reducible
abbrev Matrix (n m : Nat) := Fin n → Fin m → Int
@[reducible] def Square (n : Nat) := Matrix n n
def identity (n : Nat) : Square n := fun i j => if i = j then 1 else 0
instance : Inhabited (Matrix n m) := ⟨fun _ _ => 0⟩
