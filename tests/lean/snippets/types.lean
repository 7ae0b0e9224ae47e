-- snippet: enum-and-open
inductive Color where
  | red | green | blue
deriving Repr, DecidableEq

open Color

def next : Color → Color
  | red => green
  | green => blue
  | blue => red

theorem next_next_next (c : Color) : next (next (next c)) = c := by
  cases c <;> rfl

-- snippet: structure-instance
structure Vec where
  x : Int
  y : Int
deriving Repr, BEq, DecidableEq, Inhabited, Hashable

instance : Add Vec := ⟨fun a b => ⟨a.x + b.x, a.y + b.y⟩⟩
instance : Mul Vec := ⟨fun a b => ⟨a.x * b.x, a.y * b.y⟩⟩
instance : HMul Int Vec Vec := ⟨fun k v => ⟨k * v.x, k * v.y⟩⟩

theorem Vec.add_comm (a b : Vec) : a + b = b + a := by
  show Vec.mk _ _ = Vec.mk _ _
  simp [Int.add_comm]

-- snippet: to-string
inductive Suit where | hearts | spades

instance : ToString Suit where
  toString
    | .hearts => "hearts"
    | .spades => "spades"

#eval toString Suit.spades
-- value: "spades"

-- snippet: binary-tree
inductive Tree (α : Type u) where
  | leaf : Tree α
  | node : Tree α → α → Tree α → Tree α

namespace Tree

def size : Tree α → Nat
  | leaf => 0
  | node l _ r => l.size + 1 + r.size

def toList : Tree α → List α
  | leaf => []
  | node l x r => l.toList ++ [x] ++ r.toList

def insert [Ord α] (t : Tree α) (x : α) : Tree α :=
  match t with
  | leaf => node leaf x leaf
  | node l y r =>
    match compare x y with
    | .lt => node (l.insert x) y r
    | .gt => node l y (r.insert x)
    | .eq => t

theorem length_toList (t : Tree α) : t.toList.length = t.size := by
  induction t with
  | leaf => rfl
  | node l x r ihl ihr => simp [toList, size, ihl, ihr]; omega

end Tree

-- snippet: nested-inductive
inductive Rose (α : Type) where
  | mk : α → List (Rose α) → Rose α

partial def Rose.count : Rose α → Nat
  | .mk _ children => 1 + (children.map count).foldl (· + ·) 0

-- snippet: mutual-inductive
mutual
inductive EvenList where
  | nil : EvenList
  | cons : Nat → OddList → EvenList
inductive OddList where
  | cons : Nat → EvenList → OddList
end

mutual
def EvenList.length : EvenList → Nat
  | .nil => 0
  | .cons _ t => t.length + 1
def OddList.length : OddList → Nat
  | .cons _ t => t.length + 1
end

-- snippet: vector-family
inductive Vect (α : Type u) : Nat → Type u where
  | nil : Vect α 0
  | cons : α → Vect α n → Vect α (n + 1)

def Vect.toList : Vect α n → List α
  | .nil => []
  | .cons x xs => x :: xs.toList

theorem Vect.length_toList (v : Vect α n) : v.toList.length = n := by
  induction v with
  | nil => rfl
  | cons _ _ ih => simp [toList, ih]

-- snippet: inductive-prop
inductive Even : Nat → Prop where
  | zero : Even 0
  | step : Even n → Even (n + 2)

theorem Even.add (hm : Even m) (hn : Even n) : Even (m + n) := by
  induction hn with
  | zero => exact hm
  | step _ ih => exact .step ih

theorem not_even_one : ¬ Even 1 := nofun

-- snippet: class-with-laws
class Monoid' (α : Type u) extends Mul α, One α where
  mul_assoc : ∀ a b c : α, a * b * c = a * (b * c)
  one_mul : ∀ a : α, 1 * a = a
  mul_one : ∀ a : α, a * 1 = a

instance : Monoid' Nat where
  mul_assoc := Nat.mul_assoc
  one_mul := Nat.one_mul
  mul_one := Nat.mul_one

theorem one_unique [Monoid' α] (e : α) (h : ∀ a : α, e * a = a) : e = 1 := by
  rw [← Monoid'.mul_one e, h]

-- snippet: structure-extends
structure Shape where
  name : String
  sides : Nat := 0
deriving Repr

structure Polygon extends Shape where
  lengths : List Nat
  sides := lengths.length
  closed : Bool := true

def triangle : Polygon := { name := "triangle", lengths := [3, 4, 5] }
example : triangle.sides = 3 := rfl

-- snippet: structure-update
structure Config where
  verbose : Bool := false
  depth : Nat := 3
  label : String := "run"
deriving Repr

def quiet (c : Config) : Config := { c with verbose := false, depth := c.depth + 1 }
#eval (quiet {}).depth
-- value: 4

-- snippet: anonymous-constructors
structure Interval where
  lo : Nat
  hi : Nat
  valid : lo ≤ hi

def Interval.unit : Interval := ⟨0, 1, by decide⟩
def Interval.width (i : Interval) : Nat := i.hi - i.lo
def Interval.shift (i : Interval) (k : Nat) : Interval :=
  ⟨i.lo + k, i.hi + k, Nat.add_le_add_right i.valid k⟩

-- snippet: subtype
def Positive := { n : Nat // 0 < n }
def Positive.one : Positive := ⟨1, Nat.one_pos⟩
def Positive.add (a b : Positive) : Positive := ⟨a.1 + b.1, Nat.add_pos_left a.2 _⟩

-- snippet: functor-instance
inductive Maybe (α : Type u) where
  | nothing
  | just (a : α)

instance : Functor Maybe where
  map f
    | .nothing => .nothing
    | .just a => .just (f a)

instance : Monad Maybe where
  pure := .just
  bind
    | .nothing, _ => .nothing
    | .just a, f => f a

example : (Nat.succ <$> Maybe.just 2) = .just 3 := rfl

-- snippet: lawful-monad
structure Reader' (ρ α : Type) where
  run : ρ → α

instance : Monad (Reader' ρ) where
  pure a := ⟨fun _ => a⟩
  bind m f := ⟨fun r => (f (m.run r)).run r⟩

instance : LawfulMonad (Reader' ρ) := LawfulMonad.mk'
  (id_map := fun _ => rfl)
  (pure_bind := fun _ _ => rfl)
  (bind_assoc := fun _ _ _ => rfl)

-- snippet: decidable-instance
def Divides (a b : Nat) : Prop := ∃ k, b = a * k

instance (a b : Nat) : Decidable (Divides a b) :=
  decidable_of_iff (b % a = 0) ⟨
    fun h => ⟨b / a, (Nat.mul_div_cancel' (Nat.dvd_of_mod_eq_zero h)).symm⟩,
    fun ⟨k, h⟩ => by rw [h]; exact Nat.mul_mod_right a k⟩

-- snippet: coercion
structure Celsius where
  degrees : Int

instance : Coe Int Celsius := ⟨fun d => ⟨d⟩⟩
instance : CoeDep Nat 0 Celsius := ⟨⟨0⟩⟩
def freezing : Celsius := (0 : Int)

structure Morphism where
  toFun : Nat → Nat

instance : CoeFun Morphism (fun _ => Nat → Nat) := ⟨Morphism.toFun⟩
def applyTwice (f : Morphism) (n : Nat) : Nat := f (f n)

-- snippet: coe-sort
structure Bundle where
  carrier : Type
  point : carrier

instance : CoeSort Bundle Type := ⟨Bundle.carrier⟩
def Bundle.const (b : Bundle) : Nat → b := fun _ => b.point

-- snippet: of-nat
inductive Peano where
  | zero
  | succ (n : Peano)

def Peano.ofNat : Nat → Peano
  | 0 => zero
  | n + 1 => succ (ofNat n)

instance : OfNat Peano n := ⟨Peano.ofNat n⟩
example : (2 : Peano) = .succ (.succ .zero) := rfl

-- snippet: universe-polymorphism
universe u v

structure Pair (α : Type u) (β : Type v) where
  fst : α
  snd : β

def Pair.map {α : Type u} {β : Type v} {γ : Type u} (f : α → γ) (p : Pair α β) : Pair γ β :=
  ⟨f p.fst, p.snd⟩

#check (Pair.map : (Nat → Nat) → Pair Nat Bool → Pair Nat Bool)
-- says: Pair.map

-- snippet: quotient
def sameParity (a b : Nat) : Prop := a % 2 = b % 2

instance paritySetoid : Setoid Nat where
  r := sameParity
  iseqv := ⟨fun _ => rfl, fun h => h.symm, fun h k => h.trans k⟩

def Parity := Quotient paritySetoid
def Parity.of (n : Nat) : Parity := Quotient.mk _ n
theorem two_is_zero : Parity.of 2 = Parity.of 0 := Quotient.sound rfl

-- snippet: deriving-ord
inductive Level where
  | low | mid | high
deriving Repr, Ord, BEq, Hashable, Inhabited, DecidableEq

#eval compare Level.low Level.high
-- value: lt

-- snippet: deriving-parameters
inductive Expr (α : Type) where
  | var (name : α)
  | num (value : Int)
  | add (a b : Expr α)
deriving Repr, BEq, Inhabited

-- snippet: deriving-instance-later
structure Key where
  id : Nat
  tag : String

deriving instance BEq, Hashable, Repr for Key

-- snippet: expression-evaluator
inductive Arith where
  | const (n : Int)
  | plus (a b : Arith)
  | times (a b : Arith)
deriving Repr

namespace Arith
def eval : Arith → Int
  | const n => n
  | plus a b => a.eval + b.eval
  | times a b => a.eval * b.eval

def fold : Arith → Arith
  | plus (const 0) b => b.fold
  | plus a b => plus a.fold b.fold
  | times a b => times a.fold b.fold
  | e => e

theorem eval_fold (e : Arith) : e.fold.eval = e.eval := by
  induction e using fold.induct <;> simp_all [fold, eval]
end Arith

-- snippet: typeclass-default-methods
class Describe (α : Type) where
  describe : α → String
  shout : α → String := fun a => (describe a).toUpper

instance : Describe Bool where
  describe b := if b then "yes" else "no"

instance [Describe α] : Describe (Option α) where
  describe
    | none => "nothing"
    | some a => Describe.describe a

export Describe (describe)
def both (a : Bool) : String := describe a ++ describe (some a)

-- snippet: outparam
class Container (c : Type) (α : outParam Type) where
  empty : c
  insert : α → c → c
  toList : c → List α

instance : Container (List α) α where
  empty := []
  insert := List.cons
  toList := id

def single (a : Nat) : List Nat := Container.insert a Container.empty
