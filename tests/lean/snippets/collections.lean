-- snippet: list-map-filter
def evensDoubled (xs : List Nat) : List Nat :=
  (xs.filter (· % 2 == 0)).map (2 * ·)

example : evensDoubled [1, 2, 3, 4] = [4, 8] := rfl

-- snippet: append-reverse
def palindrome (xs : List α) : List α := xs ++ xs.reverse

theorem palindrome_length (xs : List α) : (palindrome xs).length = 2 * xs.length := by
  simp [palindrome]; omega

-- snippet: for-in-do
def sumSquares (xs : List Nat) : Nat := Id.run do
  let mut total := 0
  for x in xs do
    total := total + x * x
  return total

-- snippet: for-in-range
def countdown (n : Nat) : Array Nat := Id.run do
  let mut out := #[]
  for i in [0:n] do
    if i % 3 == 0 then continue
    if i > 100 then break
    out := out.push (n - i)
  return out

-- snippet: find-and-any
def firstLong (words : List String) : Option String :=
  words.find? (fun w => w.length > 5)

def hasEmpty (words : List String) : Bool := words.any String.isEmpty

-- snippet: array-fold
def maximum (xs : Array Nat) : Nat := xs.foldl max 0

def mean (xs : Array Float) : Float := xs.foldl (· + ·) 0 / xs.size.toFloat

-- snippet: array-index
def swapEnds (xs : Array α) (h : 0 < xs.size) : Array α :=
  xs.swap 0 (xs.size - 1)

def third? (xs : Array Nat) : Option Nat := xs[2]?
def thirdOr (xs : Array Nat) : Nat := xs.getD 2 0
def thirdForced (xs : Array Nat) : Nat := xs[2]!

-- snippet: option-do
def addOptions (a b : Option Nat) : Option Nat := do
  let x ← a
  let y ← b
  guard (x < y)
  pure (x + y)

-- snippet: option-chain
def half? (n : Nat) : Option Nat := if n % 2 = 0 then some (n / 2) else none

def quarter? (n : Nat) : Option Nat := half? n >>= half?

example : quarter? 12 = some 3 := by decide
example : (half? 7).isNone := rfl

-- snippet: zip-and-fold
def dot (xs ys : List Int) : Int := (List.zipWith (· * ·) xs ys).foldr (· + ·) 0

#eval dot [1, 2, 3] [4, 5, 6]
-- value: 32

-- snippet: sorting
def sorted (xs : List Nat) : List Nat := xs.mergeSort
def sortedArray (xs : Array Nat) : Array Nat := xs.qsort (· < ·)

-- snippet: insertion-sort
def insertSorted (x : Nat) : List Nat → List Nat
  | [] => [x]
  | y :: ys => if x ≤ y then x :: y :: ys else y :: insertSorted x ys

def insertionSort : List Nat → List Nat
  | [] => []
  | x :: xs => insertSorted x (insertionSort xs)

theorem length_insertSorted (x : Nat) (xs : List Nat) :
    (insertSorted x xs).length = xs.length + 1 := by
  induction xs with
  | nil => rfl
  | cons y ys ih =>
    simp only [insertSorted]
    split <;> simp [ih]

-- snippet: flatMap
def pairs (xs : List α) (ys : List β) : List (α × β) :=
  xs.flatMap fun x => ys.map fun y => (x, y)

-- snippet: string-code
def shout (s : String) : String := s.toUpper ++ "!"
def initials (words : List String) : String :=
  String.join (words.map fun w => (w.take 1).toString)
def isVowel (c : Char) : Bool := "aeiou".contains c
def vowels (s : String) : Nat := (s.toList.filter isVowel).length

-- snippet: string-interpolation
structure Person where
  name : String
  age : Nat

def Person.describe (p : Person) : String := s!"{p.name} is {p.age} years old"

-- snippet: caesar
def shiftChar (k : Nat) (c : Char) : Char :=
  if c.isLower then Char.ofNat ((c.toNat - 'a'.toNat + k) % 26 + 'a'.toNat) else c

def caesar (k : Nat) (s : String) : String := s.map (shiftChar k)

-- snippet: parse-numbers
def parseLine (line : String) : Option (List Nat) :=
  (line.splitOn ",").mapM fun field => field.toNat?

-- snippet: state-monad
def fresh : StateM Nat Nat := do
  let n ← get
  set (n + 1)
  return n

def threeFresh : StateM Nat (List Nat) := do
  let a ← fresh
  let b ← fresh
  let c ← fresh
  return [a, b, c]

-- snippet: except-monad
def safeDiv (a b : Nat) : Except String Nat :=
  if b == 0 then throw "division by zero" else pure (a / b)

def compute (a b c : Nat) : Except String Nat := do
  let x ← safeDiv a b
  let y ← safeDiv x c
  return x + y

-- snippet: try-catch
def recover (a b : Nat) : Except String Nat := do
  try
    if b == 0 then throw "zero"
    return a / b
  catch _ => return 0

-- snippet: nested-actions
def collatzLength (start : Nat) : Nat := Id.run do
  let mut n := start
  let mut steps := 0
  while n > 1 do
    n := if n % 2 == 0 then n / 2 else 3 * n + 1
    steps := steps + 1
  return steps

-- snippet: match-pairs
def zipLongest : List α → List α → List (Option α × Option α)
  | [], [] => []
  | x :: xs, [] => (some x, none) :: zipLongest xs []
  | [], y :: ys => (none, some y) :: zipLongest [] ys
  | x :: xs, y :: ys => (some x, some y) :: zipLongest xs ys

-- snippet: products-and-sums
def swap (p : α × β) : β × α := (p.2, p.1)
def collapse : α ⊕ α → α
  | .inl a => a
  | .inr a => a
def fromPair (p : Nat × Nat × Nat) : Nat :=
  let (a, b, c) := p
  a + b + c

-- snippet: list-theorems
theorem map_id' (xs : List α) : xs.map id = xs := by simp
theorem append_cancel (xs ys zs : List Nat) (h : xs ++ ys = xs ++ zs) : ys = zs :=
  List.append_cancel_left h
theorem mem_split (x : Nat) (xs ys : List Nat) : x ∈ xs ++ ys ↔ x ∈ xs ∨ x ∈ ys := by
  simp

-- snippet: hashmap
import Std.Data.HashMap
open Std

def histogram (s : String) : HashMap Char Nat :=
  s.toList.foldl (fun m c => m.insert c (m.getD c 0 + 1)) {}

-- snippet: subarray-and-ranges
def windowSum (xs : Array Nat) : Nat := Id.run do
  let mut s := 0
  for x in xs[1:3] do
    s := s + x
  return s

-- snippet: array-modify
def increment (xs : Array Nat) (i : Nat) : Array Nat := xs.modify i (· + 1)

def matrix (n : Nat) : Array (Array Nat) :=
  Array.ofFn fun (i : Fin n) => Array.ofFn fun (j : Fin n) => i.val * j.val
