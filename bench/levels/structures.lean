/-
Lists, trees, expressions and sorting as a user defines them, with the lemmas one proves about them in
order. Every theorem is given all earlier ones. The proofs here show that each can be proved; a
benchmark leaves them out.
-/

namespace Structures

-- Lists

inductive Seq (α : Type) where
  | nil : Seq α
  | cons (head : α) (tail : Seq α) : Seq α

namespace Seq

variable {α β γ : Type}

def append : Seq α → Seq α → Seq α
  | nil, ys => ys
  | cons x xs, ys => cons x (append xs ys)

def length : Seq α → Nat
  | nil => 0
  | cons _ xs => length xs + 1

def map (f : α → β) : Seq α → Seq β
  | nil => nil
  | cons x xs => cons (f x) (map f xs)

def reverse : Seq α → Seq α
  | nil => nil
  | cons x xs => append (reverse xs) (cons x nil)

def reverseOnto : Seq α → Seq α → Seq α
  | nil, ys => ys
  | cons x xs, ys => reverseOnto xs (cons x ys)

def mem (a : α) : Seq α → Prop
  | nil => False
  | cons x xs => a = x ∨ mem a xs

def filter (p : α → Bool) : Seq α → Seq α
  | nil => nil
  | cons x xs => if p x then cons x (filter p xs) else filter p xs

def foldr (f : α → β → β) (b : β) : Seq α → β
  | nil => b
  | cons x xs => f x (foldr f b xs)

def sum : Seq Nat → Nat
  | nil => 0
  | cons x xs => x + sum xs

def toList : Seq α → List α
  | nil => []
  | cons x xs => x :: toList xs

theorem nil_append (xs : Seq α) : append nil xs = xs := rfl
theorem append_nil (xs : Seq α) : append xs nil = xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [append, ih]
theorem append_assoc (xs ys zs : Seq α) : append (append xs ys) zs = append xs (append ys zs) := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [append, ih]
theorem length_append (xs ys : Seq α) : length (append xs ys) = length xs + length ys := by
  induction xs with
  | nil => simp [append, length]
  | cons x xs ih => simp [append, length, ih]; omega
theorem length_map (f : α → β) (xs : Seq α) : length (map f xs) = length xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [map, length, ih]
theorem map_append (f : α → β) (xs ys : Seq α) :
    map f (append xs ys) = append (map f xs) (map f ys) := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [append, map, ih]
theorem map_id (xs : Seq α) : map (fun x => x) xs = xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [map, ih]
theorem map_map (g : β → γ) (f : α → β) (xs : Seq α) :
    map g (map f xs) = map (fun x => g (f x)) xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [map, ih]
theorem length_reverse (xs : Seq α) : length (reverse xs) = length xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [reverse, length_append, length, ih]
theorem reverse_append (xs ys : Seq α) :
    reverse (append xs ys) = append (reverse ys) (reverse xs) := by
  induction xs with
  | nil => simp [append, reverse, append_nil]
  | cons x xs ih => simp [append, reverse, ih, append_assoc]
theorem reverse_reverse (xs : Seq α) : reverse (reverse xs) = xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [reverse, reverse_append, ih, append]
theorem reverse_singleton (a : α) : reverse (cons a nil) = cons a nil := rfl
theorem map_reverse (f : α → β) (xs : Seq α) : map f (reverse xs) = reverse (map f xs) := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [reverse, map, map_append, ih]
theorem reverseOnto_eq (xs ys : Seq α) : reverseOnto xs ys = append (reverse xs) ys := by
  induction xs generalizing ys with
  | nil => rfl
  | cons x xs ih => simp [reverseOnto, reverse, ih, append_assoc, append]
theorem reverse_eq_reverseOnto (xs : Seq α) : reverse xs = reverseOnto xs nil := by
  rw [reverseOnto_eq, append_nil]
theorem mem_append (a : α) (xs ys : Seq α) : mem a (append xs ys) ↔ mem a xs ∨ mem a ys := by
  induction xs with
  | nil => simp [append, mem]
  | cons x xs ih => simp [append, mem, ih, or_assoc]
theorem mem_reverse (a : α) (xs : Seq α) : mem a (reverse xs) ↔ mem a xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [reverse, mem_append, mem, ih, or_comm]
theorem mem_map_of_mem (f : α → β) (a : α) (xs : Seq α) (h : mem a xs) : mem (f a) (map f xs) := by
  induction xs with
  | nil => exact h
  | cons x xs ih =>
    cases h with
    | inl h => exact Or.inl (by rw [h])
    | inr h => exact Or.inr (ih h)
theorem length_filter_le (p : α → Bool) (xs : Seq α) : length (filter p xs) ≤ length xs := by
  induction xs with
  | nil => simp [filter]
  | cons x xs ih => simp only [filter]; split <;> simp [length] <;> omega
theorem filter_append (p : α → Bool) (xs ys : Seq α) :
    filter p (append xs ys) = append (filter p xs) (filter p ys) := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp only [append, filter]; split <;> simp [append, ih]
theorem filter_filter (p : α → Bool) (xs : Seq α) : filter p (filter p xs) = filter p xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    cases h : p x with
    | false => simp [filter, h, ih]
    | true => simp [filter, h, ih]
theorem mem_of_mem_filter (p : α → Bool) (a : α) (xs : Seq α) (h : mem a (filter p xs)) :
    mem a xs := by
  induction xs with
  | nil => exact h
  | cons x xs ih =>
    simp only [filter] at h
    split at h
    · cases h with
      | inl h => exact Or.inl h
      | inr h => exact Or.inr (ih h)
    · exact Or.inr (ih h)
theorem foldr_append (f : α → β → β) (b : β) (xs ys : Seq α) :
    foldr f b (append xs ys) = foldr f (foldr f b ys) xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [append, foldr, ih]
theorem foldr_map (f : β → γ → γ) (g : α → β) (c : γ) (xs : Seq α) :
    foldr f c (map g xs) = foldr (fun x acc => f (g x) acc) c xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [map, foldr, ih]
theorem sum_append (xs ys : Seq Nat) : sum (append xs ys) = sum xs + sum ys := by
  induction xs with
  | nil => simp [append, sum]
  | cons x xs ih => simp [append, sum, ih]; omega
theorem sum_reverse (xs : Seq Nat) : sum (reverse xs) = sum xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [reverse, sum_append, sum, ih]; omega
theorem sum_eq_foldr (xs : Seq Nat) : sum xs = foldr (fun x acc => x + acc) 0 xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [sum, foldr, ih]
theorem toList_append (xs ys : Seq α) : toList (append xs ys) = toList xs ++ toList ys := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [append, toList, ih]
theorem length_toList (xs : Seq α) : (toList xs).length = length xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [toList, length, ih]
theorem append_left_cancel (xs ys zs : Seq α) (h : append xs ys = append xs zs) : ys = zs := by
  induction xs with
  | nil => exact h
  | cons x xs ih => exact ih (by simpa [append] using h)
theorem length_eq_zero (xs : Seq α) : length xs = 0 ↔ xs = nil := by
  cases xs with
  | nil => simp [length]
  | cons x xs => simp [length]
theorem append_eq_nil (xs ys : Seq α) : append xs ys = nil ↔ xs = nil ∧ ys = nil := by
  cases xs with
  | nil => simp [append]
  | cons x xs => simp [append]

end Seq

-- Trees

inductive Tree (α : Type) where
  | leaf : Tree α
  | node (left : Tree α) (value : α) (right : Tree α) : Tree α

namespace Tree

variable {α β : Type}

def mirror : Tree α → Tree α
  | leaf => leaf
  | node l v r => node r.mirror v l.mirror

def size : Tree α → Nat
  | leaf => 0
  | node l _ r => l.size + r.size + 1

def height : Tree α → Nat
  | leaf => 0
  | node l _ r => max l.height r.height + 1

def leaves : Tree α → Nat
  | leaf => 1
  | node l _ r => l.leaves + r.leaves

def map (f : α → β) : Tree α → Tree β
  | leaf => leaf
  | node l v r => node (l.map f) (f v) (r.map f)

def inorder : Tree α → List α
  | leaf => []
  | node l v r => l.inorder ++ v :: r.inorder

def contains (a : α) : Tree α → Prop
  | leaf => False
  | node l v r => l.contains a ∨ a = v ∨ r.contains a

theorem mirror_mirror (t : Tree α) : t.mirror.mirror = t := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp [mirror, hl, hr]
theorem size_mirror (t : Tree α) : t.mirror.size = t.size := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp [mirror, size, hl, hr]; omega
theorem height_mirror (t : Tree α) : t.mirror.height = t.height := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp [mirror, height, hl, hr, Nat.max_comm]
theorem leaves_eq_size_add_one (t : Tree α) : t.leaves = t.size + 1 := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp [leaves, size, hl, hr]; omega
theorem height_le_size (t : Tree α) : t.height ≤ t.size := by
  induction t with
  | leaf => simp [height]
  | node l v r hl hr => simp [height, size]; omega
theorem size_map (f : α → β) (t : Tree α) : (t.map f).size = t.size := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp [map, size, hl, hr]
theorem map_mirror (f : α → β) (t : Tree α) : t.mirror.map f = (t.map f).mirror := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp [map, mirror, hl, hr]
theorem length_inorder (t : Tree α) : t.inorder.length = t.size := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp [inorder, size, hl, hr]; omega
theorem inorder_mirror (t : Tree α) : t.mirror.inorder = t.inorder.reverse := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp [mirror, inorder, hl, hr]
theorem inorder_map (f : α → β) (t : Tree α) : (t.map f).inorder = t.inorder.map f := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp [map, inorder, hl, hr]
theorem contains_mirror (a : α) (t : Tree α) : t.mirror.contains a ↔ t.contains a := by
  induction t with
  | leaf => rfl
  | node l v r hl hr => simp only [mirror, contains, hl, hr]; constructor <;> rintro (h | h | h) <;> simp [h]
theorem mem_inorder (a : α) (t : Tree α) : a ∈ t.inorder ↔ t.contains a := by
  induction t with
  | leaf => simp [inorder, contains]
  | node l v r hl hr => simp [inorder, contains, hl, hr]
theorem size_eq_zero (t : Tree α) : t.size = 0 ↔ t = leaf := by
  cases t with
  | leaf => simp [size]
  | node l v r => simp [size]
theorem mirror_injective (s t : Tree α) (h : s.mirror = t.mirror) : s = t := by
  rw [← mirror_mirror s, h, mirror_mirror]

end Tree

-- Expressions

inductive Expr where
  | const (n : Nat) : Expr
  | var (name : String) : Expr
  | plus (a b : Expr) : Expr
  | times (a b : Expr) : Expr

namespace Expr

abbrev Env := String → Nat

def eval (env : Env) : Expr → Nat
  | const n => n
  | var x => env x
  | plus a b => a.eval env + b.eval env
  | times a b => a.eval env * b.eval env

def swap : Expr → Expr
  | const n => const n
  | var x => var x
  | plus a b => plus b.swap a.swap
  | times a b => times b.swap a.swap

def simplifyPlus : Expr → Expr → Expr
  | const 0, b => b
  | a, const 0 => a
  | a, b => plus a b

def simplify : Expr → Expr
  | const n => const n
  | var x => var x
  | plus a b => simplifyPlus a.simplify b.simplify
  | times a b => times a.simplify b.simplify

def subst : Expr → String → Expr → Expr
  | const n, _, _ => const n
  | var x, name, r => if x = name then r else var x
  | plus a b, name, r => plus (a.subst name r) (b.subst name r)
  | times a b, name, r => times (a.subst name r) (b.subst name r)

def depth : Expr → Nat
  | const _ => 0
  | var _ => 0
  | plus a b => max a.depth b.depth + 1
  | times a b => max a.depth b.depth + 1

inductive Instr where
  | push (n : Nat)
  | load (name : String)
  | add
  | mul

def run (env : Env) : List Instr → List Nat → List Nat
  | [], stack => stack
  | .push n :: code, stack => run env code (n :: stack)
  | .load x :: code, stack => run env code (env x :: stack)
  | .add :: code, a :: b :: stack => run env code ((b + a) :: stack)
  | .mul :: code, a :: b :: stack => run env code ((b * a) :: stack)
  | .add :: _, stack => stack
  | .mul :: _, stack => stack

def compile : Expr → List Instr
  | const n => [.push n]
  | var x => [.load x]
  | plus a b => a.compile ++ b.compile ++ [.add]
  | times a b => a.compile ++ b.compile ++ [.mul]

theorem eval_const (env : Env) (n : Nat) : (const n).eval env = n := rfl
theorem eval_plus_comm (env : Env) (a b : Expr) : (plus a b).eval env = (plus b a).eval env := by
  simp [eval, Nat.add_comm]
theorem eval_times_comm (env : Env) (a b : Expr) : (times a b).eval env = (times b a).eval env := by
  simp [eval, Nat.mul_comm]
theorem eval_plus_assoc (env : Env) (a b c : Expr) :
    (plus (plus a b) c).eval env = (plus a (plus b c)).eval env := by
  simp [eval, Nat.add_assoc]
theorem eval_distrib (env : Env) (a b c : Expr) :
    (times a (plus b c)).eval env = (plus (times a b) (times a c)).eval env := by
  simp [eval, Nat.mul_add]
theorem swap_swap (e : Expr) : e.swap.swap = e := by
  induction e with
  | const n => rfl
  | var x => rfl
  | plus a b ha hb => simp [swap, ha, hb]
  | times a b ha hb => simp [swap, ha, hb]
theorem eval_swap (env : Env) (e : Expr) : e.swap.eval env = e.eval env := by
  induction e with
  | const n => rfl
  | var x => rfl
  | plus a b ha hb => simp [swap, eval, ha, hb, Nat.add_comm]
  | times a b ha hb => simp [swap, eval, ha, hb, Nat.mul_comm]
theorem depth_swap (e : Expr) : e.swap.depth = e.depth := by
  induction e with
  | const n => rfl
  | var x => rfl
  | plus a b ha hb => simp [swap, depth, ha, hb, Nat.max_comm]
  | times a b ha hb => simp [swap, depth, ha, hb, Nat.max_comm]
theorem eval_simplifyPlus (env : Env) (a b : Expr) :
    (simplifyPlus a b).eval env = a.eval env + b.eval env := by
  unfold simplifyPlus
  split <;> simp [eval]
theorem eval_simplify (env : Env) (e : Expr) : e.simplify.eval env = e.eval env := by
  induction e with
  | const n => rfl
  | var x => rfl
  | plus a b ha hb => simp [simplify, eval_simplifyPlus, eval, ha, hb]
  | times a b ha hb => simp [simplify, eval, ha, hb]
theorem subst_self (name : String) (e : Expr) : e.subst name (var name) = e := by
  induction e with
  | const n => rfl
  | var x => simp only [subst]; split <;> simp_all
  | plus a b ha hb => simp [subst, ha, hb]
  | times a b ha hb => simp [subst, ha, hb]
theorem eval_subst (env : Env) (name : String) (r e : Expr) :
    (e.subst name r).eval env = e.eval (fun x => if x = name then r.eval env else env x) := by
  induction e with
  | const n => rfl
  | var x => simp only [subst, eval]; split <;> simp [eval]
  | plus a b ha hb => simp [subst, eval, ha, hb]
  | times a b ha hb => simp [subst, eval, ha, hb]
theorem run_compile (env : Env) (e : Expr) (code : List Instr) (stack : List Nat) :
    run env (e.compile ++ code) stack = run env code (e.eval env :: stack) := by
  induction e generalizing code stack with
  | const n => rfl
  | var x => rfl
  | plus a b ha hb => simp [compile, ha, hb, run, eval]
  | times a b ha hb => simp [compile, ha, hb, run, eval]
theorem compile_correct (env : Env) (e : Expr) : run env e.compile [] = [e.eval env] := by
  have h := run_compile env e [] []
  simpa [run] using h

end Expr

-- Insertion sort

namespace Sorting

def insert (a : Nat) : List Nat → List Nat
  | [] => [a]
  | b :: bs => if a ≤ b then a :: b :: bs else b :: insert a bs

def sort : List Nat → List Nat
  | [] => []
  | a :: as => insert a (sort as)

def Below (a : Nat) : List Nat → Prop
  | [] => True
  | b :: bs => a ≤ b ∧ Below a bs

def Sorted : List Nat → Prop
  | [] => True
  | a :: as => Below a as ∧ Sorted as

def count (a : Nat) : List Nat → Nat
  | [] => 0
  | b :: bs => if a = b then count a bs + 1 else count a bs

theorem length_insert (a : Nat) (l : List Nat) : (insert a l).length = l.length + 1 := by
  induction l with
  | nil => rfl
  | cons b bs ih => simp only [insert]; split <;> simp [ih]
theorem length_sort (l : List Nat) : (sort l).length = l.length := by
  induction l with
  | nil => rfl
  | cons a as ih => simp [sort, length_insert, ih]
theorem mem_insert (x a : Nat) (l : List Nat) : x ∈ insert a l ↔ x = a ∨ x ∈ l := by
  induction l with
  | nil => simp [insert]
  | cons b bs ih =>
    simp only [insert]
    split
    · simp
    · simp only [List.mem_cons, ih]
      constructor
      · rintro (h | h | h) <;> simp [h]
      · rintro (h | h | h) <;> simp [h]
theorem mem_sort (x : Nat) (l : List Nat) : x ∈ sort l ↔ x ∈ l := by
  induction l with
  | nil => rfl
  | cons a as ih => simp [sort, mem_insert, ih]
theorem below_of_le (a b : Nat) (l : List Nat) (h : a ≤ b) (hb : Below b l) : Below a l := by
  induction l with
  | nil => trivial
  | cons c cs ih => exact ⟨Nat.le_trans h hb.1, ih hb.2⟩
theorem below_insert (a b : Nat) (l : List Nat) (h : a ≤ b) (hl : Below a l) :
    Below a (insert b l) := by
  induction l with
  | nil => exact ⟨h, trivial⟩
  | cons c cs ih =>
    simp only [insert]
    split
    · exact ⟨h, hl⟩
    · exact ⟨hl.1, ih hl.2⟩
theorem sorted_insert (a : Nat) (l : List Nat) (h : Sorted l) : Sorted (insert a l) := by
  induction l with
  | nil => exact ⟨trivial, trivial⟩
  | cons b bs ih =>
    simp only [insert]
    split
    · next hab => exact ⟨⟨hab, below_of_le a b bs hab h.1⟩, h⟩
    · next hab => exact ⟨below_insert b a bs (by omega) h.1, ih h.2⟩
theorem sorted_sort (l : List Nat) : Sorted (sort l) := by
  induction l with
  | nil => trivial
  | cons a as ih => exact sorted_insert a _ ih
theorem insert_of_below (a : Nat) (l : List Nat) (h : Below a l) : insert a l = a :: l := by
  cases l with
  | nil => rfl
  | cons b bs => simp [insert, h.1]
theorem sort_of_sorted (l : List Nat) (h : Sorted l) : sort l = l := by
  induction l with
  | nil => rfl
  | cons a as ih => simp [sort, ih h.2, insert_of_below a as h.1]
theorem sort_sort (l : List Nat) : sort (sort l) = sort l := sort_of_sorted _ (sorted_sort l)
theorem count_insert_self (a : Nat) (l : List Nat) : count a (insert a l) = count a l + 1 := by
  induction l with
  | nil => simp [insert, count]
  | cons b bs ih =>
    simp only [insert]
    split
    · simp [count]
    · simp only [count]; split <;> simp [ih]
theorem count_insert_of_ne (a b : Nat) (l : List Nat) (h : a ≠ b) :
    count a (insert b l) = count a l := by
  induction l with
  | nil => simp [insert, count, h]
  | cons c cs ih =>
    simp only [insert]
    split
    · simp [count, h]
    · simp [count, ih]
theorem count_sort (a : Nat) (l : List Nat) : count a (sort l) = count a l := by
  induction l with
  | nil => rfl
  | cons b bs ih =>
    by_cases h : a = b
    · subst h; simp [sort, count, count_insert_self, ih]
    · simp [sort, count, count_insert_of_ne _ _ _ h, ih, h]

end Sorting

end Structures
