-- snippet: and-comm
theorem and_swap' (p q : Prop) : p ∧ q → q ∧ p := fun ⟨hp, hq⟩ => ⟨hq, hp⟩

theorem or_swap (p q : Prop) (h : p ∨ q) : q ∨ p := by
  cases h with
  | inl hp => exact Or.inr hp
  | inr hq => exact Or.inl hq

-- snippet: calc-proof
theorem sq_expand (a b : Nat) : (a + b) * (a + b) = a * a + 2 * (a * b) + b * b := by
  calc (a + b) * (a + b)
      = a * (a + b) + b * (a + b) := Nat.add_mul a b (a + b)
    _ = a * a + a * b + (b * a + b * b) := by rw [Nat.mul_add, Nat.mul_add]
    _ = a * a + 2 * (a * b) + b * b := by rw [Nat.mul_comm b a]; omega

-- snippet: calc-mixed
theorem chain (a b c d : Nat) (h₁ : a = b) (h₂ : b < c) (h₃ : c ≤ d) : a < d :=
  calc
    a = b := h₁
    _ < c := h₂
    _ ≤ d := h₃

-- snippet: induction-sum
def sumTo : Nat → Nat
  | 0 => 0
  | n + 1 => (n + 1) + sumTo n

theorem gauss (n : Nat) : 2 * sumTo n = n * (n + 1) := by
  induction n with
  | zero => rfl
  | succ n ih =>
    rw [sumTo, Nat.mul_add, ih, ← Nat.add_mul]
    rw [Nat.mul_comm, Nat.add_comm 2 n]

-- snippet: exists-rintro
theorem exists_double (h : ∃ n : Nat, n > 3 ∧ n < 5) : ∃ m : Nat, m = 8 := by
  obtain ⟨n, h₁, h₂⟩ := h
  exact ⟨2 * n, by omega⟩

-- snippet: by-contra-classical
open Classical in
theorem dne (p : Prop) (h : ¬¬p) : p := by
  by_cases hp : p
  · exact hp
  · exact absurd hp h

-- snippet: funext-ext
theorem ext_pair {p q : α × β} (h₁ : p.1 = q.1) (h₂ : p.2 = q.2) : p = q := by
  cases p; cases q; simp_all

theorem fun_eq (f g : Nat → Nat) (h : ∀ n, f n = g n) : f = g := by
  funext n
  exact h n

-- snippet: simp-attribute
def negate (b : Bool) : Bool := !b
@[simp] theorem negate_negate (b : Bool) : negate (negate b) = b := by cases b <;> rfl
example (b : Bool) : negate (negate (negate b)) = negate b := by simp

-- snippet: attribute-command
def twice (n : Nat) := n + n
theorem twice_eq (n : Nat) : twice n = 2 * n := by unfold twice; omega
attribute [simp] twice_eq
example : twice 4 = 8 := by simp
example (n : Nat) : twice n = 2 * n := by simp
attribute [-simp] twice_eq
attribute [irreducible] twice

-- snippet: ext-attribute
@[ext] structure Point3 where
  x : Nat
  y : Nat
  z : Nat

example (p q : Point3) (hx : p.x = q.x) (hy : p.y = q.y) (hz : p.z = q.z) : p = q := by
  ext <;> assumption

-- snippet: decide-finite
theorem demorgan : ∀ a b : Bool, (!(a && b)) = (!a || !b) := by decide
theorem small_squares : ∀ n : Fin 10, n.val * n.val < 100 := by decide

-- snippet: omega-linear
theorem linear (x y : Int) (h₁ : 2 * x + y = 7) (h₂ : x - y = 2) : x = 3 ∧ y = 1 := by omega
theorem div_bound (n : Nat) (h : 10 ≤ n) : n / 2 ≥ 5 := by omega

-- snippet: simp-only-arith
theorem rearrange (a b c : Nat) : a + b + c = c + b + a := by
  simp only [Nat.add_comm, Nat.add_left_comm]

-- snippet: conv-mode
theorem conv_example (a b c : Nat) (h : b = c) : a + b = a + c := by
  conv => lhs; rw [h]

-- snippet: have-suffices-show
theorem sandwich (a b : Nat) (h : a ≤ b) (h' : b ≤ a) : a = b := by
  have key : a ≤ b ∧ b ≤ a := ⟨h, h'⟩
  suffices a - b = 0 ∧ b - a = 0 by omega
  constructor
  · show a - b = 0
    omega
  · exact Nat.sub_eq_zero_of_le key.2

-- snippet: match-in-proof
theorem pred_lt (n : Nat) (h : n ≠ 0) : n.pred < n :=
  match n with
  | 0 => absurd rfl h
  | k + 1 => Nat.lt_succ_self k

-- snippet: strong-induction
theorem strong (P : Nat → Prop) (h : ∀ n, (∀ m, m < n → P m) → P n) (n : Nat) : P n := by
  induction n using Nat.strongRecOn with
  | ind n ih => exact h n ih

-- snippet: well-founded-theorem
theorem log_le (n : Nat) : Nat.log2 n ≤ n := by
  by_cases h : n = 0
  · simp [h]
  · exact Nat.le_of_lt (Nat.log2_lt h |>.mpr Nat.lt_two_pow_self)

-- snippet: sorry-warning
theorem unproved (n : Nat) : n * n ≥ n := by
  sorry
-- says: declaration uses

-- snippet: iff-rewriting
theorem iff_chain (p q r : Prop) (h₁ : p ↔ q) (h₂ : q ↔ r) : p ↔ r := by
  rw [h₁, h₂]
theorem not_exists' (P : Nat → Prop) : (¬ ∃ n, P n) ↔ ∀ n, ¬ P n :=
  ⟨fun h n hp => h ⟨n, hp⟩, fun h ⟨n, hp⟩ => h n hp⟩

-- snippet: all-goals-combinators
theorem bools (a b c : Bool) : (a && b && c) = (c && b && a) := by
  cases a <;> cases b <;> cases c <;> rfl
theorem repeats (a b c : Nat) (h : a = b) (h' : b = c) : a = c ∧ c = a := by
  refine ⟨?_, ?_⟩
  all_goals simp [h, h']

-- snippet: grind-and-exact
theorem grinding (a b c : Nat) (h : a = b) (h' : b = c) (f : Nat → Nat) : f a = f c := by grind
example (xs : List Nat) (h : xs ≠ []) : 0 < xs.length := by
  exact List.length_pos_iff.mpr h

-- snippet: injection-noconfusion
theorem succ_inj' (a b : Nat) (h : a.succ = b.succ) : a = b := by
  injection h
theorem some_ne_none (a : Nat) : some a ≠ none := nofun

-- snippet: subset-example
def Subset' (p q : Nat → Prop) : Prop := ∀ n, p n → q n
infix:50 " ⊑ " => Subset'
theorem sub_trans {p q r : Nat → Prop} (h : p ⊑ q) (h' : q ⊑ r) : p ⊑ r :=
  fun n hp => h' n (h n hp)
instance : Trans Subset' Subset' Subset' := ⟨sub_trans⟩

-- snippet: fun-induction
def half : Nat → Nat
  | 0 => 0
  | 1 => 0
  | n + 2 => half n + 1
theorem half_le (n : Nat) : half n ≤ n := by
  fun_induction half n <;> omega

-- snippet: choose-classical
noncomputable def pick (p : Nat → Prop) (h : ∃ n, p n) : Nat := Classical.choose h
theorem pick_spec (p : Nat → Prop) (h : ∃ n, p n) : p (pick p h) := Classical.choose_spec h

-- snippet: type-error
theorem wrong : 1 + 1 = 3 := by rfl
-- error: rfl

-- snippet: unknown-name
def uses : Nat := notThere + 1
-- error: notThere

-- snippet: one-error-among-many
theorem fine₁ : 1 + 1 = 2 := rfl
theorem broken : (2 : Nat) = "two" := rfl
-- error:
theorem fine₂ : 2 + 2 = 4 := rfl
#check fine₂
-- says: fine₂ : 2 + 2 = 4
