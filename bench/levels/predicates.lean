/-
Predicates and relations as a user defines them by rules: evenness, an order, closures of a relation,
evaluation, ordered lists, permutations, palindromes, types, automata, accessibility. Every theorem is
given all earlier ones. The proofs here show that each can be proved; a benchmark leaves them out.
-/

namespace Predicates

-- Evenness

inductive Even : Nat → Prop where
  | zero : Even 0
  | step (n : Nat) (h : Even n) : Even (n + 2)

theorem even_four : Even 4 := by
  exact Even.step 2 (Even.step 0 Even.zero)
theorem not_even_one : ¬ Even 1 := by
  intro h
  cases h
theorem even_of_even_add_two (n : Nat) (h : Even (n + 2)) : Even n := by
  cases h with
  | step _ h => exact h
theorem not_even_five : ¬ Even 5 := by
  intro h
  exact not_even_one (even_of_even_add_two 1 (even_of_even_add_two 3 h))
theorem even_add (m n : Nat) (hm : Even m) (hn : Even n) : Even (m + n) := by
  induction hn with
  | zero => exact hm
  | step k _ ih => exact Even.step (m + k) ih
theorem even_double (n : Nat) : Even (n + n) := by
  induction n with
  | zero => exact Even.zero
  | succ n ih =>
    have e : n + 1 + (n + 1) = n + n + 2 := by omega
    rw [e]
    exact Even.step _ ih
theorem even_or_even_succ (n : Nat) : Even n ∨ Even (n + 1) := by
  induction n with
  | zero => exact Or.inl Even.zero
  | succ n ih =>
    cases ih with
    | inl h => exact Or.inr (Even.step n h)
    | inr h => exact Or.inl h
theorem not_even_succ (n : Nat) (h : Even n) : ¬ Even (n + 1) := by
  induction h with
  | zero => exact not_even_one
  | step k _ ih =>
    intro h
    exact ih (even_of_even_add_two (k + 1) h)
theorem even_iff_exists (n : Nat) : Even n ↔ ∃ k, n = k + k := by
  constructor
  · intro h
    induction h with
    | zero => exact ⟨0, rfl⟩
    | step m _ ih =>
      cases ih with
      | intro k e => exact ⟨k + 1, by omega⟩
  · rintro ⟨k, rfl⟩
    exact even_double k
theorem even_cancel (m n : Nat) (h : Even (m + n)) (hm : Even m) : Even n := by
  induction hm with
  | zero => simpa using h
  | step k _ ih =>
    apply ih
    apply even_of_even_add_two
    have e : k + n + 2 = k + 2 + n := by omega
    rw [e]
    exact h
theorem exists_even_above_five : ∃ n, n > 5 ∧ Even n := by
  exact ⟨6, by decide, Even.step 4 even_four⟩
theorem exists_even_above (m : Nat) : ∃ n, n > m ∧ Even n := by
  cases even_or_even_succ m with
  | inl h => exact ⟨m + 2, by omega, Even.step m h⟩
  | inr h => exact ⟨m + 1, by omega, h⟩

-- An order

inductive Le : Nat → Nat → Prop where
  | refl (n : Nat) : Le n n
  | step (m n : Nat) (h : Le m n) : Le m (n + 1)

theorem zero_le (n : Nat) : Le 0 n := by
  induction n with
  | zero => exact Le.refl 0
  | succ n ih => exact Le.step 0 n ih
theorem le_trans (a b c : Nat) (h : Le a b) (k : Le b c) : Le a c := by
  induction k with
  | refl => exact h
  | step n _ ih => exact Le.step a n ih
theorem succ_le_succ (m n : Nat) (h : Le m n) : Le (m + 1) (n + 1) := by
  induction h with
  | refl => exact Le.refl _
  | step n _ ih => exact Le.step _ _ ih
theorem not_succ_le_zero (n : Nat) : ¬ Le (n + 1) 0 := by
  intro h
  cases h
theorem le_of_succ_le_succ (m n : Nat) (h : Le (m + 1) (n + 1)) : Le m n := by
  cases h with
  | refl => exact Le.refl m
  | step _ h => exact le_trans m (m + 1) n (Le.step m m (Le.refl m)) h
theorem le_iff_exists_add (m n : Nat) : Le m n ↔ ∃ k, m + k = n := by
  constructor
  · intro h
    induction h with
    | refl => exact ⟨0, rfl⟩
    | step n _ ih =>
      cases ih with
      | intro k e => exact ⟨k + 1, by omega⟩
  · rintro ⟨k, rfl⟩
    induction k with
    | zero => exact Le.refl m
    | succ k ih => exact Le.step m (m + k) ih
theorem le_total (m n : Nat) : Le m n ∨ Le n m := by
  induction m with
  | zero => exact Or.inl (zero_le n)
  | succ m ih =>
    rcases ih with h | h
    · cases h with
      | refl => exact Or.inr (Le.step _ _ (Le.refl _))
      | step k h => exact Or.inl (succ_le_succ m k h)
    · exact Or.inr (Le.step n m h)

-- Closures of a relation

inductive Star {α : Type} (r : α → α → Prop) : α → α → Prop where
  | refl (a : α) : Star r a a
  | head (a b c : α) (first : r a b) (rest : Star r b c) : Star r a c

inductive Sym {α : Type} (r : α → α → Prop) : α → α → Prop where
  | forth (a b : α) (h : r a b) : Sym r a b
  | back (a b : α) (h : r b a) : Sym r a b

theorem star_single {α : Type} (r : α → α → Prop) (a b : α) (h : r a b) : Star r a b := by
  exact Star.head a b b h (Star.refl b)
theorem star_trans {α : Type} (r : α → α → Prop) (a b c : α) (h : Star r a b) (k : Star r b c) :
    Star r a c := by
  induction h with
  | refl => exact k
  | head a x b first _ ih => exact Star.head a x c first (ih k)
theorem star_tail {α : Type} (r : α → α → Prop) (a b c : α) (h : Star r a b) (last : r b c) :
    Star r a c := by
  exact star_trans r a b c h (star_single r b c last)
theorem star_map {α β : Type} (r : α → α → Prop) (s : β → β → Prop) (f : α → β)
    (keeps : ∀ a b, r a b → s (f a) (f b)) (a b : α) (h : Star r a b) : Star s (f a) (f b) := by
  induction h with
  | refl a => exact Star.refl (f a)
  | head a x b first _ ih => exact Star.head (f a) (f x) (f b) (keeps a x first) ih
theorem star_cases {α : Type} (r : α → α → Prop) (a c : α) (h : Star r a c) :
    a = c ∨ ∃ b, r a b ∧ Star r b c := by
  cases h with
  | refl => exact Or.inl rfl
  | head _ b _ first rest => exact Or.inr ⟨b, first, rest⟩
theorem star_star {α : Type} (r : α → α → Prop) (a b : α) (h : Star (Star r) a b) : Star r a b := by
  induction h with
  | refl a => exact Star.refl a
  | head a x b first _ ih => exact star_trans r a x b first ih
theorem sym_symm {α : Type} (r : α → α → Prop) (a b : α) (h : Sym r a b) : Sym r b a := by
  cases h with
  | forth h => exact Sym.back b a h
  | back h => exact Sym.forth b a h
theorem star_sym_symm {α : Type} (r : α → α → Prop) (a b : α) (h : Star (Sym r) a b) :
    Star (Sym r) b a := by
  induction h with
  | refl a => exact Star.refl a
  | head a x b first _ ih => exact star_tail (Sym r) b x a ih (sym_symm r a x first)
-- Evaluation

inductive Term where
  | const (n : Nat) : Term
  | plus (a b : Term) : Term

inductive Value : Term → Prop where
  | const (n : Nat) : Value (Term.const n)

inductive Step : Term → Term → Prop where
  | add (m n : Nat) : Step (Term.plus (Term.const m) (Term.const n)) (Term.const (m + n))
  | left (a a' b : Term) (h : Step a a') : Step (Term.plus a b) (Term.plus a' b)
  | right (n : Nat) (b b' : Term) (h : Step b b') :
      Step (Term.plus (Term.const n) b) (Term.plus (Term.const n) b')

inductive Big : Term → Nat → Prop where
  | const (n : Nat) : Big (Term.const n) n
  | plus (a b : Term) (m n : Nat) (ha : Big a m) (hb : Big b n) : Big (Term.plus a b) (m + n)

theorem value_does_not_step (t u : Term) (h : Value t) : ¬ Step t u := by
  cases h with
  | const n =>
    intro s
    cases s
theorem progress (t : Term) : Value t ∨ ∃ u, Step t u := by
  induction t with
  | const n => exact Or.inl (Value.const n)
  | plus a b ha hb =>
    right
    rcases ha with va | ⟨a', sa⟩
    · cases va with
      | const m =>
        rcases hb with vb | ⟨b', sb⟩
        · cases vb with
          | const n => exact ⟨_, Step.add m n⟩
        · exact ⟨_, Step.right m b b' sb⟩
    · exact ⟨_, Step.left a a' b sa⟩
theorem step_deterministic (t u v : Term) (h : Step t u) (k : Step t v) : u = v := by
  induction h generalizing v with
  | add m n =>
    cases k with
    | add => rfl
    | left _ _ _ h => cases h
    | right _ _ _ h => cases h
  | left a a' b h ih =>
    cases k with
    | add => cases h
    | left _ x _ k => rw [ih x k]
    | right => cases h
  | right n b b' h ih =>
    cases k with
    | add => cases h
    | left _ _ _ k => cases k
    | right _ _ x k => rw [ih x k]
theorem big_total (t : Term) : ∃ n, Big t n := by
  induction t with
  | const n => exact ⟨n, Big.const n⟩
  | plus a b ha hb =>
    rcases ha with ⟨m, ha⟩
    rcases hb with ⟨n, hb⟩
    exact ⟨m + n, Big.plus a b m n ha hb⟩
theorem big_deterministic (t : Term) (m n : Nat) (h : Big t m) (k : Big t n) : m = n := by
  induction h generalizing n with
  | const m =>
    cases k
    rfl
  | plus a b x y _ _ ha hb =>
    cases k with
    | plus _ _ x' y' ka kb => rw [ha x' ka, hb y' kb]
theorem big_of_step (t u : Term) (n : Nat) (s : Step t u) (h : Big u n) : Big t n := by
  induction s generalizing n with
  | add x y =>
    cases h
    exact Big.plus _ _ x y (Big.const x) (Big.const y)
  | left a a' b _ ih =>
    cases h with
    | plus _ _ x y ha hb => exact Big.plus a b x y (ih x ha) hb
  | right m b b' _ ih =>
    cases h with
    | plus _ _ x y ha hb => exact Big.plus _ b x y ha (ih y hb)
theorem big_of_steps (t : Term) (n : Nat) (h : Star Step t (Term.const n)) : Big t n := by
  generalize e : Term.const n = u at h
  induction h with
  | refl a =>
    subst e
    exact Big.const n
  | head a b c first _ ih => exact big_of_step a b n first (ih e)
theorem steps_of_big (t : Term) (n : Nat) (h : Big t n) : Star Step t (Term.const n) := by
  induction h with
  | const n => exact Star.refl _
  | plus a b m n _ _ ha hb =>
    have left : Star Step (Term.plus a b) (Term.plus (Term.const m) b) :=
      star_map Step Step (fun x => Term.plus x b) (fun x y s => Step.left x y b s) _ _ ha
    have right : Star Step (Term.plus (Term.const m) b) (Term.plus (Term.const m) (Term.const n)) :=
      star_map Step Step (Term.plus (Term.const m)) (fun x y s => Step.right m x y s) _ _ hb
    exact star_tail Step _ _ _ (star_trans Step _ _ _ left right) (Step.add m n)

-- Membership

inductive In {α : Type} (a : α) : List α → Prop where
  | here (l : List α) : In a (a :: l)
  | there (b : α) (l : List α) (h : In a l) : In a (b :: l)

theorem in_map {α β : Type} (f : α → β) (a : α) (l : List α) (h : In a l) : In (f a) (l.map f) := by
  induction h with
  | here l => exact In.here (l.map f)
  | there b l _ ih => exact In.there (f b) (l.map f) ih
theorem in_append_cases {α : Type} (a : α) (xs ys : List α) (h : In a (xs ++ ys)) :
    In a xs ∨ In a ys := by
  induction xs with
  | nil => exact Or.inr h
  | cons x xs ih =>
    cases h with
    | here => exact Or.inl (In.here xs)
    | there _ _ h => exact (ih h).imp (In.there x xs) id
theorem in_split {α : Type} (a : α) (l : List α) (h : In a l) : ∃ xs ys, l = xs ++ a :: ys := by
  induction h with
  | here l => exact ⟨[], l, rfl⟩
  | there b l _ ih =>
    rcases ih with ⟨xs, ys, e⟩
    exact ⟨b :: xs, ys, by rw [e]; rfl⟩

-- Ordered lists

inductive Ordered : List Nat → Prop where
  | nil : Ordered []
  | one (a : Nat) : Ordered [a]
  | cons (a b : Nat) (l : List Nat) (h : a ≤ b) (rest : Ordered (b :: l)) : Ordered (a :: b :: l)

theorem ordered_one_two_two : Ordered [1, 2, 2] := by
  exact Ordered.cons 1 2 [2] (by decide) (Ordered.cons 2 2 [] (by decide) (Ordered.one 2))
theorem not_ordered_two_one : ¬ Ordered [2, 1] := by
  intro h
  cases h with
  | cons _ _ _ h _ => omega
theorem ordered_tail (a : Nat) (l : List Nat) (h : Ordered (a :: l)) : Ordered l := by
  cases h with
  | one => exact Ordered.nil
  | cons _ _ _ _ rest => exact rest
theorem head_le_of_in (a b : Nat) (l : List Nat) (h : Ordered (a :: l)) (m : In b l) : a ≤ b := by
  induction m generalizing a with
  | here l =>
    cases h with
    | cons _ _ _ le _ => exact le
  | there c l _ ih =>
    cases h with
    | cons _ _ _ le rest => exact Nat.le_trans le (ih c rest)

-- Permutations

inductive Perm {α : Type} : List α → List α → Prop where
  | nil : Perm [] []
  | cons (a : α) (xs ys : List α) (h : Perm xs ys) : Perm (a :: xs) (a :: ys)
  | swap (a b : α) (l : List α) : Perm (a :: b :: l) (b :: a :: l)
  | trans (xs ys zs : List α) (h : Perm xs ys) (k : Perm ys zs) : Perm xs zs

theorem perm_refl {α : Type} (l : List α) : Perm l l := by
  induction l with
  | nil => exact Perm.nil
  | cons a l ih => exact Perm.cons a l l ih
theorem perm_symm {α : Type} (xs ys : List α) (h : Perm xs ys) : Perm ys xs := by
  induction h with
  | nil => exact Perm.nil
  | cons a xs ys _ ih => exact Perm.cons a ys xs ih
  | swap a b l => exact Perm.swap b a l
  | trans xs ys zs _ _ h k => exact Perm.trans zs ys xs k h
theorem perm_length {α : Type} (xs ys : List α) (h : Perm xs ys) : xs.length = ys.length := by
  induction h with
  | nil => rfl
  | cons a xs ys _ ih => simp [ih]
  | swap a b l => rfl
  | trans xs ys zs _ _ h k => exact h.trans k
theorem not_perm_nil_cons {α : Type} (a : α) (l : List α) : ¬ Perm [] (a :: l) := by
  intro h
  have e := perm_length _ _ h
  simp at e
theorem perm_in {α : Type} (a : α) (xs ys : List α) (h : Perm xs ys) (m : In a xs) : In a ys := by
  induction h with
  | nil => exact m
  | cons b xs ys _ ih =>
    cases m with
    | here => exact In.here ys
    | there _ _ m => exact In.there b ys (ih m)
  | swap b c l =>
    rcases m with _ | ⟨_, _, _ | ⟨_, _, m⟩⟩
    · exact In.there c _ (In.here l)
    · exact In.here _
    · exact In.there c _ (In.there b l m)
  | trans xs ys zs _ _ h k => exact k (h m)
theorem perm_middle {α : Type} (a : α) (xs ys : List α) : Perm (a :: (xs ++ ys)) (xs ++ a :: ys) := by
  induction xs with
  | nil => exact perm_refl (a :: ys)
  | cons x xs ih =>
    exact Perm.trans _ _ _ (Perm.swap a x (xs ++ ys)) (Perm.cons x _ _ ih)

-- Palindromes

inductive Palindrome {α : Type} : List α → Prop where
  | nil : Palindrome []
  | one (a : α) : Palindrome [a]
  | around (a : α) (l : List α) (h : Palindrome l) : Palindrome (a :: (l ++ [a]))

theorem palindrome_one_two_one : Palindrome [1, 2, 1] := by
  exact Palindrome.around 1 [2] (Palindrome.one 2)
theorem palindrome_reverse {α : Type} (l : List α) (h : Palindrome l) : l.reverse = l := by
  induction h with
  | nil => rfl
  | one a => rfl
  | around a l _ ih => simp [ih]
theorem palindrome_append_reverse {α : Type} (l : List α) : Palindrome (l ++ l.reverse) := by
  induction l with
  | nil => exact Palindrome.nil
  | cons a l ih =>
    have h := Palindrome.around a _ ih
    simpa using h

-- Types

inductive Code where
  | yes : Code
  | no : Code
  | zero : Code
  | succ (a : Code) : Code
  | isZero (a : Code) : Code
  | cond (c a b : Code) : Code

inductive Ty where
  | bool : Ty
  | nat : Ty

inductive HasType : Code → Ty → Prop where
  | yes : HasType Code.yes Ty.bool
  | no : HasType Code.no Ty.bool
  | zero : HasType Code.zero Ty.nat
  | succ (a : Code) (h : HasType a Ty.nat) : HasType (Code.succ a) Ty.nat
  | isZero (a : Code) (h : HasType a Ty.nat) : HasType (Code.isZero a) Ty.bool
  | cond (c a b : Code) (t : Ty) (hc : HasType c Ty.bool) (ha : HasType a t) (hb : HasType b t) :
      HasType (Code.cond c a b) t

inductive Reduces : Code → Code → Prop where
  | isZeroZero : Reduces (Code.isZero Code.zero) Code.yes
  | isZeroSucc (a : Code) : Reduces (Code.isZero (Code.succ a)) Code.no
  | condYes (a b : Code) : Reduces (Code.cond Code.yes a b) a
  | condNo (a b : Code) : Reduces (Code.cond Code.no a b) b
  | cond (c c' a b : Code) (h : Reduces c c') : Reduces (Code.cond c a b) (Code.cond c' a b)

theorem succ_yes_has_no_type (t : Ty) : ¬ HasType (Code.succ Code.yes) t := by
  intro h
  cases h with
  | succ _ h => cases h
theorem type_unique (e : Code) (s t : Ty) (h : HasType e s) (k : HasType e t) : s = t := by
  induction h with
  | yes => cases k; rfl
  | no => cases k; rfl
  | zero => cases k; rfl
  | succ => cases k; rfl
  | isZero => cases k; rfl
  | cond c a b s _ _ _ _ ha _ =>
    cases k with
    | cond _ _ _ _ _ ka _ => exact ha ka
theorem reduces_keeps_type (e f : Code) (t : Ty) (r : Reduces e f) (h : HasType e t) : HasType f t := by
  induction r generalizing t with
  | isZeroZero => cases h; exact HasType.yes
  | isZeroSucc => cases h; exact HasType.no
  | condYes => cases h; assumption
  | condNo => cases h; assumption
  | cond c c' a b _ ih =>
    cases h with
    | cond _ _ _ _ hc ha hb => exact HasType.cond c' a b t (ih Ty.bool hc) ha hb

-- An automaton

inductive Accepts : Bool → List Bool → Prop where
  | done : Accepts true []
  | flip (s : Bool) (w : List Bool) (h : Accepts (!s) w) : Accepts s (true :: w)
  | stay (s : Bool) (w : List Bool) (h : Accepts s w) : Accepts s (false :: w)

theorem accepts_two_ones : Accepts true [true, false, true] := by
  exact Accepts.flip true _ (Accepts.stay false _ (Accepts.flip false _ Accepts.done))
theorem accepts_or (w : List Bool) : Accepts true w ∨ Accepts false w := by
  induction w with
  | nil => exact Or.inl Accepts.done
  | cons b w ih =>
    cases b with
    | false => exact ih.imp (Accepts.stay true w) (Accepts.stay false w)
    | true => exact ih.symm.imp (Accepts.flip true w) (Accepts.flip false w)
theorem not_accepts_both (w : List Bool) : ¬ (Accepts true w ∧ Accepts false w) := by
  rintro ⟨h, k⟩
  induction w with
  | nil => cases k
  | cons b w ih =>
    cases h with
    | flip _ _ h =>
      cases k with
      | flip _ _ k => exact ih k h
    | stay _ _ h =>
      cases k with
      | stay _ _ k => exact ih h k
-- Accessibility

inductive Reach {α : Type} (r : α → α → Prop) : α → Prop where
  | intro (a : α) (h : ∀ b, r b a → Reach r b) : Reach r a

theorem reach_inv {α : Type} (r : α → α → Prop) (a b : α) (h : Reach r a) (k : r b a) : Reach r b := by
  cases h with
  | intro _ h => exact h b k
theorem reach_not_self {α : Type} (r : α → α → Prop) (a : α) (h : Reach r a) : ¬ r a a := by
  induction h with
  | intro a _ ih =>
    intro k
    exact ih a k k
theorem reach_lt (n : Nat) : Reach (fun a b => a < b) n := by
  induction n with
  | zero => exact Reach.intro 0 (fun b h => absurd h (Nat.not_lt_zero b))
  | succ n ih =>
    constructor
    intro b h
    rcases Nat.lt_or_eq_of_le (Nat.le_of_lt_succ h) with h | h
    · exact reach_inv _ n b ih h
    · exact h ▸ ih

end Predicates
